/**
 * Makes the references of the APIs, in Markdown, from the OpenAPI and AsyncAPI
 * documents: a heading for each operation, message and schema, so that a search
 * finds them and links to them are checked. The site has them, and so has the page.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { slug } from './slug.js';

export const docs = join(dirname(fileURLToPath(import.meta.url)), '../../docs');
const methods = ['get', 'post', 'put', 'patch', 'delete'];
const problems = 'https://www.rfc-editor.org/rfc/rfc9457';

const last = (ref) => ref.split('/').at(-1);
const link = (heading, text = heading) => `[${text}](#${slug(heading)})`;
/** A schema may have the name of a tag, and so has a heading of its own kind. */
const schemaHeading = (name) => `Schema: ${name}`;
const code = (value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
/** Text of a document in a cell of a table. */
const cell = (text) => (text ?? '').trim().replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

/** Returns a table, or nothing where it would have no rows. */
function table(head, rows) {
  if (rows.length === 0) return '';
  const line = (cells) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n') + '\n';
}

/** Follows a reference within document; schemas stay references, by their names. */
function resolve(document, value) {
  if (!value?.$ref?.startsWith('#/')) return value;
  return value.$ref
    .slice(2)
    .split('/')
    .reduce((at, step) => at[step.replaceAll('~1', '/').replaceAll('~0', '~')], document);
}

/** Returns what a schema allows, in a few words. */
function type(schema) {
  if (schema === undefined || schema === true) return 'anything';
  if (schema.$ref) return link(schemaHeading(last(schema.$ref)), last(schema.$ref));
  const options = schema.oneOf ?? schema.anyOf;
  if (options) return options.map(type).join(' or ');
  if (schema.allOf) return schema.allOf.map(type).join(' and ');
  if ('const' in schema) return code(schema.const);
  if (schema.enum) return schema.enum.map(code).join(', ');
  const words = [schema.type ?? (schema.properties ? 'object' : 'anything')].flat();
  const list = words.includes('array') ? `list of ${type(schema.items)}` : undefined;
  return [words.map((word) => (word === 'array' ? list : word)).join(' or '), ...limits(schema)].join(', ');
}

function limits(schema) {
  const between = (low, high, unit) => {
    if (low === undefined && high === undefined) return [];
    if (high === undefined) return [`${low}${low === 1 ? unit.replace(/s$/, '') : unit} or more`];
    return [low === undefined ? `at most ${high}${unit}` : `${low} to ${high}${unit}`];
  };
  return [
    ...(schema.format ? [schema.format] : []),
    ...between(schema.minimum, schema.maximum, ''),
    ...between(schema.minLength, schema.maxLength, ' characters'),
    ...between(schema.minItems, schema.maxItems, ' items'),
    ...(schema.pattern ? [`matches ${code(schema.pattern)}`] : []),
    ...(schema.default === undefined ? [] : [`default ${code(schema.default)}`]),
  ];
}

/** Returns the rows of an object's fields, those of nested objects below their own. */
function fields(schema, before = '') {
  const parts = [schema, ...(schema.allOf ?? []).filter((part) => !part.$ref)];
  return parts.flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).flatMap(([name, field]) => {
      const row = [code(before + name), type(field), required.includes(name) ? 'yes' : '', field.description];
      const nested = field.type?.includes?.('array') ? [field.items ?? {}, `${before}${name}[].`] : [field, `${before}${name}.`];
      return [row, ...(nested[0].$ref ? [] : fields(...nested))];
    }),
  );
}

const fieldHead = ['field', 'type', 'required', 'meaning'];

function describeSchema(heading, schema, level = '###') {
  const rows = fields(schema);
  const example = schema.examples?.[0];
  return [
    `${level} ${heading}`,
    schema.description ?? '',
    rows.length && !schema.allOf && !schema.oneOf ? '' : `Is: ${type(schema)}.`,
    table(fieldHead, rows),
    example === undefined ? '' : '```json\n' + JSON.stringify(example, null, 2) + '\n```',
  ];
}

function describeContent(content = {}) {
  return Object.entries(content).map(([media, { schema }]) => `${code(media)}: ${type(schema)}`);
}

/** Returns the words for who may call an operation. */
function callers(document, operation) {
  if (operation['x-roles']) return `Roles: ${operation['x-roles'].map(code).join(', ')}.`;
  const security = operation.security ?? document.security ?? [];
  if (security.length === 0) return 'Needs no sign-in.';
  return security.some((way) => Object.keys(way).length === 0) ? 'The sign-in is optional.' : 'For everybody who has signed in.';
}

function describeOperation(document, heading, item, operation) {
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((p) => resolve(document, p));
  const body = resolve(document, operation.requestBody);
  const bodies = Object.values(body?.content ?? {}).flatMap(({ schema }) => (schema?.$ref ? [] : fields(schema ?? {})));
  const responses = Object.entries(operation.responses ?? {}).map(([status, response]) => {
    const found = resolve(document, response);
    return [code(status), found.description, describeContent(found.content).join('; '), Object.keys(found.headers ?? {}).map(code).join(', ')];
  });
  return [
    `### ${heading}`,
    `**${operation.summary}.** ${operation.description ?? ''}`,
    callers(document, operation),
    table(
      ['parameter', 'in', 'type', 'required', 'meaning'],
      parameters.map((p) => [code(p.name), p.in, type(p.schema), p.required ? 'yes' : '', p.description]),
    ),
    body ? `Body: ${describeContent(body.content).join(', or ')}. ${body.description ?? ''}` : '',
    table(fieldHead, bodies),
    table(['answer', 'when', 'body', 'headers'], responses),
  ];
}

/** Returns the page of an OpenAPI document. */
function openapi(path, document) {
  const { info, tags, components } = document;
  const found = Object.entries({ ...document.paths, ...document.webhooks }).flatMap(([at, item]) =>
    methods.filter((m) => item[m]).map((m) => ({ heading: at.startsWith('/') ? `${m.toUpperCase()} ${at}` : at, item, operation: item[m] })),
  );
  const named = new Set(tags.map(({ name }) => name));
  for (const { heading, operation } of found) {
    if (!named.has(operation.tags?.[0])) throw new Error(`${path}: ${heading} must have one of the document's tags first`);
  }
  const kinds = { Parameters: components.parameters, Headers: components.headers };
  return [
    `# ${info.title}: API reference`,
    `Version ${info.version}. This page is made from [${last(path)}](https://github.com/cityconnect/cityconnect/blob/main/docs/${path}), which generators of clients read. Errors are [problems](../problems.md) as in [RFC 9457](${problems}).`,
    info.description,
    ...tags.flatMap(({ name, description }) => [
      `## ${name[0].toUpperCase()}${name.slice(1)}`,
      description ?? '',
      ...found.filter(({ operation }) => operation.tags[0] === name).flatMap((o) => describeOperation(document, o.heading, o.item, o.operation)),
    ]),
    '## Schemas',
    ...Object.entries(components.schemas).flatMap(([name, schema]) => describeSchema(schemaHeading(name), schema)),
    ...Object.entries(kinds).flatMap(([kind, all]) =>
      all ? [`## ${kind}`, table(['name', 'type', 'meaning'], Object.values(all).map((p, i) => [code(p.name ?? Object.keys(all)[i]), type(p.schema), p.description]))] : [],
    ),
  ];
}

/** Returns the page of the AsyncAPI document, whose schemas are files beside it. */
function asyncapi(path, document) {
  const { info, channels, components } = document;
  const names = (channel) => Object.values(channel.messages).map((m) => resolve(document, m).name);
  const queue = (channel) => channel.bindings.amqp.is === 'queue';
  const all = Object.values(channels);
  const rows = (kind) => all.filter((c) => queue(c) === kind).map((c) => [code(c.address), names(c).map((name) => link(name)).join(', '), c.description]);
  return [
    '# Messages between the services: reference',
    `Version ${info.version}. This page is made from [${last(path)}](https://github.com/cityconnect/cityconnect/blob/main/docs/${path}) and the [schemas](https://github.com/cityconnect/cityconnect/tree/main/docs/schemas). What happens to messages that fail: [recoverability](../recoverability.md).`,
    info.description,
    '## Routing keys',
    `All are published to the topic exchange ${code(Object.values(channels)[0].bindings.amqp.exchange.name)}.`,
    table(['routing key', 'message', 'meaning'], rows(false)),
    '## Queues',
    table(['queue', 'messages', 'meaning'], rows(true)),
    '## Messages',
    ...Object.values(components.messages).flatMap((message) => {
      const schema = JSON.parse(readFileSync(join(docs, message.payload.schema.$ref), 'utf8'));
      const keys = all.filter((c) => !queue(c) && names(c).includes(message.name)).map((c) => code(c.address));
      const [heading, ...rest] = describeSchema(message.name, schema);
      return [heading, `Routing key: ${keys.join(', ')}. Schema: [${last(message.payload.schema.$ref)}](https://github.com/cityconnect/cityconnect/blob/main/docs/${message.payload.schema.$ref}).`, ...rest];
    }),
    ...Object.entries(components.schemas).flatMap(([name, schema]) => describeSchema(name[0].toUpperCase() + name.slice(1), schema, '##')),
  ];
}

/** Returns the references by their names; parse reads YAML. */
export function references(parse) {
  const read = (path) => parse(readFileSync(join(docs, path), 'utf8'));
  const pages = {
    'report-service': openapi('openapi/report-service.yaml', read('openapi/report-service.yaml')),
    'notification-service': openapi('openapi/notification-service.yaml', read('openapi/notification-service.yaml')),
    messages: asyncapi('asyncapi.yaml', read('asyncapi.yaml')),
  };
  return Object.fromEntries(Object.entries(pages).map(([name, parts]) => [name, parts.filter(Boolean).join('\n\n')]));
}
