// Few rules, each with its reason. Types are checked by tsc, not here.
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['node_modules/', 'dist/', 'src/api/*.gen.ts'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['src/**/*.{ts,tsx}'],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { projectService: true, tsconfigRootDir: new URL('.', import.meta.url).pathname },
    },
    plugins: { '@typescript-eslint': tseslint.plugin, 'react-hooks': hooks },
    rules: {
      // A promise that nobody waits for loses its failure.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      // A status, an event or a message that was added must not be forgotten.
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      // The types come from the OpenAPI documents; any would switch them off.
      '@typescript-eslint/no-explicit-any': 'error',
      // What the types exclude needs no check, and a check that is always true hides a mistake.
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      // `1` + 1, [object Object] in a text, and the like.
      '@typescript-eslint/restrict-plus-operands': 'error',
      '@typescript-eslint/no-base-to-string': 'error',
      // Hooks count their calls: one in a condition mixes up the state of all others.
      'react-hooks/rules-of-hooks': 'error',
      eqeqeq: 'error',
      // Titles and notes are anyone's text; markup of others never gets into the page.
      'no-restricted-syntax': [
        'error',
        { selector: 'JSXAttribute[name.name="dangerouslySetInnerHTML"]', message: 'Show text as text.' },
        { selector: 'AssignmentExpression > MemberExpression[property.name=/^(inner|outer)HTML$/]', message: 'Show text as text.' },
      ],
      'no-console': 'error',
      // What is kept belongs to the browser or to a user; state/storage.ts knows whose it is.
      'no-restricted-globals': ['error', { name: 'localStorage', message: 'Use browserSetting or userData of state/storage.ts.' }],
    },
  },
  { files: ['src/state/storage.ts', 'src/**/*.test.*'], rules: { 'no-restricted-globals': 'off' } },
);
