import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import MarkdownIt from 'markdown-it';
import { parse } from 'yaml';

import { docs, references } from '../../../../scripts/docs-site/api.js';
import { slug } from '../../../../scripts/docs-site/slug.js';

const REPOSITORY = 'https://github.com/cityconnect/cityconnect/blob/main/docs/';

/** What programs read, at the same place below /docs/ as in the repository. */
const documents = ['openapi/open311.yaml', 'asyncapi.yaml', ...readdirSync(join(docs, 'schemas')).map((name) => `schemas/${name}`)];

/** What each service says of itself, at the gateway. */
const served = {
  'openapi/report-service.yaml': '/report-service/openapi.json',
  'openapi/notification-service.yaml': '/openapi.json',
};

const INDEX = `# The API

- [Problems](problems.md): each error that the services answer with, and what to do about it
- [report-service](api/report-service.md): reports, votes, statuses, categories and open data
- [notification-service](api/notification-service.md): notifications, live streams, webhooks and the operators' part
- [Messages](api/messages.md) between the services

For generators of clients: OpenAPI of [report-service](openapi/report-service.yaml), [notification-service](openapi/notification-service.yaml)
and [Open311](openapi/open311.yaml), and [AsyncAPI](asyncapi.yaml). [How to write a client](clients.md) says more.
`;

const STYLE = `:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; overflow-wrap: anywhere }
h1, h2, h3 { line-height: 1.25; margin-top: 2em }
h1 { margin-top: 1em }
:target { outline: 2px solid; outline-offset: 0.25em }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em }
pre { white-space: pre-wrap }
table { border-collapse: collapse; width: 100% }
th, td { border: 1px solid GrayText; padding: 0.25em 0.5em; text-align: start; vertical-align: top; min-width: 4em }
`;

/** Where a link of a page in docs/ leads on the page. */
function target(href) {
  const [, path, anchor = ''] = /^([^#]*)(#.*)?$/.exec(href);
  const file = path.replace(REPOSITORY, '').replace(/^(\.\.?\/)+/, '');
  if (path === '') return href;
  if (served[file]) return served[file];
  if (documents.includes(file)) return `/docs/${file}${anchor}`;
  const page = /^(problems|(?:api\/)?(?:report-service|notification-service|messages))\.md$/.exec(file)?.[1];
  if (page) return `/docs/${page.replace('api/', '')}${anchor}`;
  return /^[a-z]+:/.test(path) ? href : `${REPOSITORY}${file}${anchor}`;
}

/** Makes a page of Markdown: headings have GitHub's anchors, as in the repository. */
function page(text) {
  const md = new MarkdownIt();
  const anchors = new Map();
  md.core.ruler.push('addresses', ({ tokens }) => {
    tokens.forEach((token, i) => {
      if (token.type === 'heading_open') {
        const anchor = slug(tokens[i + 1].content);
        const before = anchors.get(anchor) ?? 0;
        anchors.set(anchor, before + 1);
        token.attrSet('id', before ? `${anchor}-${before}` : anchor);
      }
      for (const child of token.children ?? []) if (child.type === 'link_open') child.attrSet('href', target(child.attrGet('href')));
    });
  });
  const main = md.render(text);
  const title = md.utils.escapeHtml(/^# (.+)$/m.exec(text)[1]);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<nav><a href="/">Reports</a> · <a href="/docs/">The API</a></nav>
<main>
${main}</main>
</body>
</html>
`;
}

/** All files below /docs/, by their names. */
export function files() {
  const read = (file) => readFileSync(join(docs, file), 'utf8');
  const pages = { index: INDEX, problems: read('problems.md').replace(/^(\d{3})\. /gm, '**$1** '), ...references(parse) };
  return {
    ...Object.fromEntries(Object.entries(pages).map(([name, text]) => [`${name}.html`, page(text)])),
    ...Object.fromEntries(documents.map((file) => [file, read(file)])),
    'style.css': STYLE,
  };
}

/** Writes what /docs/ has: the explanation of each problem, and the references of the API. */
export function apiDocuments() {
  return {
    name: 'api-documents',
    generateBundle() {
      for (const [name, source] of Object.entries(files())) this.emitFile({ type: 'asset', fileName: `docs/${name}`, source });
    },
  };
}
