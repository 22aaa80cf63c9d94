import { render } from 'preact';
import { afterEach, expect, test } from 'vitest';

import { Failure } from '../../api/client';
import { setLanguage } from '../../lang/i18n';
import { draftError } from '../../state/draft';
import { FieldFault, OtherFaults } from './field-fault';

const faults = new Failure({
  type: '#invalid-input',
  title: 'invalid',
  status: 400,
  errors: [
    { pointer: '/title', detail: 'must not be blank' },
    { pointer: '/photo', detail: 'not a picture' },
  ],
});

const draw = () => {
  const root = document.createElement('div');
  render(
    <>
      <FieldFault pointers={['/title']} />
      <OtherFaults known={['/title']} />
    </>,
    root,
  );
  return root.textContent;
};

afterEach(() => setLanguage('en'));

test('each fault is shown beside its field, and no fault is shown nowhere', () => {
  draftError.value = faults;
  expect(draw()).toBe('must not be blank/photo: not a picture');
});

test('a field explains itself in the reader’s language', async () => {
  draftError.value = faults;
  await setLanguage('id');
  expect(draw()).toContain('1 sampai 200 karakter');
});
