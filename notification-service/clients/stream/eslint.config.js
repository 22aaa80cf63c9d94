// The rules are the page's.
export { default } from '../../internal/web/app/eslint.config.js';
