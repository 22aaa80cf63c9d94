import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { setLanguage } from '../../lang/i18n';
import { categories } from '../../state/categories';
import { discardDraft, updateDraft } from '../../state/draft';
import { PickCategory } from './category';

test('a category is found by the words of the reader, and the chosen one stays in sight', async () => {
  discardDraft();
  const names = [
    'Roads and potholes',
    'Street lights and signals',
    'Graffiti',
    'Parks and trees',
    'Sidewalks',
    'Animals',
    'Water and drainage',
  ];
  categories.value = [...names, 'Waste and illegal dumping', 'Other'].map((name, id) => ({ id: id + 1, name, description: '' }));
  await setLanguage('id');
  const root = document.createElement('div');
  await act(() => render(<PickCategory />, root));
  const found = async (words: string) => {
    const field = root.querySelector<HTMLInputElement>('[type=search]')!;
    field.value = words;
    await act(() => void field.dispatchEvent(new Event('input', { bubbles: true })));
    return [...root.querySelectorAll('.option')].map(({ textContent }) => textContent);
  };
  expect(await found('')).toHaveLength(9);
  expect(await found('grafiti')).toEqual(['Grafiti']);
  await act(() => updateDraft({ category_id: 6 }));
  expect(await found('grafiti')).toEqual(['Grafiti', 'Hewan']);
  expect(await found('nothing of that name')).toEqual(['Hewan']);
  await act(() => render(null, root));
  await setLanguage('en');
});
