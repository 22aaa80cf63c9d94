import { render } from 'preact';
import { beforeEach, expect, test } from 'vitest';

import { setLanguage } from '../lang/i18n';
import { sayFaultsAtFields } from './validity';

sayFaultsAtFields();

let form: HTMLFormElement;
const field = (name: string) => form.querySelector<HTMLInputElement>(`[name=${name}]`)!;
const said = () => [...form.querySelectorAll('.said-here')].map(({ textContent }) => textContent);

beforeEach(async () => {
  await setLanguage('en');
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  render(
    <form>
      <label class="field">
        Title <input name="title" required pattern=".*\S.*" title="In one line" />
      </label>
      <label class="field">
        Address <input name="address" type="email" />
      </label>
      <fieldset class="choices">
        <input type="radio" name="level" value="a" required />
        <input type="radio" name="level" value="b" required />
      </fieldset>
    </form>,
    root,
  );
  form = document.querySelector('form')!;
});

test('each field says what is wrong with it, the first has the focus, and no bubble comes', () => {
  let bubbles = 0;
  form.addEventListener('invalid', (event) => event.defaultPrevented || bubbles++, true);
  field('address').value = 'ann';
  expect(form.checkValidity()).toBe(false);
  expect(said()).toEqual(['Please fill this in.', 'An address such as ann@example.org.', 'Please choose one.']);
  expect([document.activeElement, bubbles]).toEqual([field('title'), 0]);
});

test('what is corrected is no longer wrong, and a message comes once', () => {
  form.checkValidity();
  form.checkValidity();
  expect(said()).toHaveLength(2);
  const title = field('title');
  title.value = 'Dark lamp';
  title.dispatchEvent(new Event('input', { bubbles: true }));
  const choice = form.querySelector<HTMLInputElement>('[value=b]')!;
  choice.click();
  expect([said(), form.querySelectorAll('[aria-invalid]').length]).toEqual([[], 0]);
});

test('a field that explains what it takes says that, and in the language of the page', async () => {
  const title = field('title');
  title.value = '   ';
  form.checkValidity();
  expect(said()[0]).toBe('In one line');
  await setLanguage('id');
  title.value = '';
  form.checkValidity();
  expect(said()[0]).toBe('Mohon diisi.');
  await setLanguage('en');
});
