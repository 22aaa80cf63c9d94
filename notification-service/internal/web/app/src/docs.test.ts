import { expect, test } from 'vitest';

import problems from '../../../../../docs/problems.md?raw';
import { files } from '../docs.js';

const made = files();
const addresses = new Map(
  Object.entries(made).map(([name, text]) => [`/docs/${name.replace(/\.html$/, '').replace(/^index$/, '')}`, text]),
);
const idsOf = (text = '') => [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

test('each problem is explained at the address that is its type', () => {
  const names = [...problems.matchAll(/^## ([\w-]+)$/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(40);
  expect(idsOf(addresses.get('/docs/problems'))).toEqual(expect.arrayContaining(names));
  // No status is taken for the number of a list.
  expect(addresses.get('/docs/problems')).not.toContain('<ol');
});

test('each link leads to something that is there', () => {
  // Types in the answers of the services, and in the page.
  const others = ['/', '/icon.svg', '/openapi.json', '/report-service/openapi.json'];
  const dead = [...addresses].flatMap(([from, text]) => {
    if (!text.startsWith('<!doctype')) return [];
    expect(text).not.toMatch(/<script|style=/); // which the page's policy forbids
    return [...text.matchAll(/ href="([^"]+)"/g)].flatMap(([, href = '']) => {
      if (/^https:\/\//.test(href)) return [];
      const [path, anchor] = href.split('#');
      const target = path ? addresses.get(path) : text;
      const found = anchor === undefined ? target !== undefined || others.includes(path ?? '') : idsOf(target).includes(anchor);
      return found ? [] : [`${from}: ${href}`];
    });
  });
  expect(dead).toEqual([]);
});
