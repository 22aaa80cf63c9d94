/**
 * Says at a field what is wrong with it. Browsers say it in their own language, in a
 * bubble over what stands below, and of one field at a time.
 */
import { t } from '../lang/i18n';

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** The first of the fields that a form finds wrong gets the focus; the others get their messages. */
let first: Control | undefined;

/** Listens for the whole page: to each form, whenever it comes. */
export function sayFaultsAtFields(): void {
  document.addEventListener('invalid', onInvalid, true);
  for (const type of ['input', 'change']) document.addEventListener(type, onChange, true);
}

function onInvalid(event: Event): void {
  const control = event.target as Control;
  event.preventDefault(); // the bubble
  const place = placeOf(control);
  const message = messageIn(place) ?? place.appendChild(document.createElement('small'));
  message.className = 'fault said-here';
  message.setAttribute('role', 'alert');
  message.textContent = faultOf(control);
  control.setAttribute('aria-invalid', 'true');
  if (first) return;
  first = control;
  setTimeout(() => (first = undefined));
  control.focus();
}

/** A field that has become right is no longer said to be wrong. */
function onChange({ target }: Event): void {
  if (!(target instanceof Element) || !('validity' in target)) return;
  const control = target as Control;
  if (!control.validity.valid) return;
  const place = placeOf(control);
  messageIn(place)?.remove();
  for (const each of place.querySelectorAll('[aria-invalid]')) each.removeAttribute('aria-invalid');
}

/** Choices that belong together have one message. */
function placeOf(control: Control): Element {
  return control.closest('.choices, .options, .field') ?? control.parentElement ?? control;
}

function messageIn(place: Element): Element | undefined {
  return [...place.children].find((child) => child.classList.contains('said-here'));
}

export function faultOf(control: Control): string {
  const { validity: wrong, title } = control;
  const limits = control instanceof HTMLInputElement ? control : undefined;
  if (wrong.valueMissing) return t(control.type === 'radio' || control instanceof HTMLSelectElement ? 'field.choose' : 'field.missing');
  if (wrong.typeMismatch) return t(control.type === 'email' ? 'field.email' : 'field.url');
  if (wrong.patternMismatch) return title || t('field.missing');
  if (wrong.rangeUnderflow) return t('field.at-least', { limit: limits?.min ?? '' });
  if (wrong.rangeOverflow) return t('field.at-most', { limit: limits?.max ?? '' });
  if (wrong.tooShort || wrong.tooLong)
    return t('field.length', { least: Math.max(0, control instanceof HTMLSelectElement ? 0 : control.minLength) });
  if (wrong.customError) return control.validationMessage;
  return t('field.wrong');
}
