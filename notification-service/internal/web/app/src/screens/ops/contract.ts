/** The contract of the messages, from the schemas that the services are tested with. */
interface Schema {
  description: string;
  required: string[];
  properties: Record<string, { type?: string | string[]; format?: string; enum?: string[]; minLength?: number }>;
}

const schemas = import.meta.glob<Schema>('../../../../../../../docs/schemas/*.json', { eager: true, import: 'default' });

/** A field that a message must have. */
export interface Field {
  name: string;
  kind: 'id' | 'text' | 'number' | 'choice';
  /** The allowed values, where there is a list of them. */
  choices: string[];
}

const byType = new Map(
  Object.values(schemas).map(({ description, required, properties }): [string, Field[]] => [
    /Routing key ([\w.]+\w)/.exec(description)?.[1] ?? '',
    required.map((name) => {
      const { type, format, enum: choices = [] } = properties[name] ?? {};
      const kind = choices.length > 0 ? 'choice' : format === 'uuid' ? 'id' : type === 'string' ? 'text' : 'number';
      return { name, kind, choices };
    }),
  ]),
);

/** The types of messages that have a contract. */
export const contractTypes = [...byType.keys()];

/** The fields that a message of this type must have; none of a type that the contract does not know. */
export function fieldsOf(type: string): Field[] {
  return byType.get(type) ?? [];
}

/** Those of the fields that a body lacks, or has without a value. */
export function missingOf(fields: Field[], body: Record<string, unknown>): Field[] {
  return fields.filter(({ name }) => body[name] === undefined || body[name] === null || body[name] === '');
}
