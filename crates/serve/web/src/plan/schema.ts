// The JSON Schema of plans, as forms need it.

import type { Json } from './document.ts';
import { isObject } from './document.ts';

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  description?: string;
  type?: string | string[];
  const?: Json;
  enum?: Json[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  prefixItems?: Schema[];
  maxProperties?: number;
  minProperties?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

/** A form that a value can have. */
export interface Alternative {
  /** Stable name, such as `text` or `key:burst`. */
  id: string;
  kind: 'const' | 'text' | 'boolean' | 'key' | 'object' | 'list';
  label: string;
  schema: Schema;
  /** Value of a constant. */
  value?: Json;
  /** Key of an object with one key. */
  key?: string;
  /** Whether numbers are allowed. */
  isNumber?: boolean;
  description?: string;
}

const DEPTH_MAX = 32;

export class PlanSchema {
  constructor(private readonly root: Schema) {}

  /** Follows references; the outer description wins. */
  resolve(schema: Schema): Schema {
    let found = schema;
    for (let depth = 0; found.$ref && depth < DEPTH_MAX; depth += 1) {
      const target = this.root.$defs?.[found.$ref.replace('#/$defs/', '')] ?? {};
      const { $ref: _, ...own } = found;
      found = { ...target, ...own };
    }
    return found;
  }

  /** Returns the schema of a key of each flow. */
  flow(key: string): Schema {
    return this.root.properties?.['flows']?.items?.properties?.[key] ?? {};
  }

  /** Returns the schema of a key of each port. */
  port(key: string): Schema {
    return this.root.properties?.['ports']?.items?.properties?.[key] ?? {};
  }

  /** Returns the forms that a value of the schema can have. */
  alternatives(schema: Schema, depth = 0): Alternative[] {
    const it = this.resolve(schema);
    if (depth > DEPTH_MAX) return [];
    const description = it.description === undefined ? {} : { description: it.description };
    if (it.anyOf) {
      const all = it.anyOf.flatMap((part) => this.alternatives(part, depth + 1));
      // A number, or a text with a number: one input.
      const texts = all.filter((part) => part.kind === 'text');
      const text = texts[0] && { ...texts[0], isNumber: texts.some((part) => part.isNumber) };
      const others = all.filter((part) => part.kind !== 'text');
      const merged = text ? [text, ...others] : others;
      return merged.filter((part, at) => merged.findIndex((other) => other.id === part.id) === at);
    }
    if (it.const !== undefined) {
      return [
        {
          id: `const:${String(it.const)}`,
          kind: 'const',
          label: String(it.const),
          schema: it,
          value: it.const,
          ...description,
        },
      ];
    }
    if (it.enum)
      return it.enum.map((value) => ({
        id: `const:${String(value)}`,
        kind: 'const',
        label: String(value),
        schema: it,
        value,
        ...description,
      }));
    const types = Array.isArray(it.type) ? it.type : [it.type];
    if (types.includes('object')) {
      if (it.maxProperties === 1 && it.properties) {
        return Object.entries(it.properties).map(([key, part]) => {
          const text = this.resolve(part).description;
          return {
            id: `key:${key}`,
            kind: 'key',
            label: words(key),
            schema: part,
            key,
            ...(text === undefined ? {} : { description: text }),
          };
        });
      }
      return [{ id: 'object', kind: 'object', label: 'details', schema: it, ...description }];
    }
    if (types.includes('array'))
      return [{ id: 'list', kind: 'list', label: 'list', schema: it, ...description }];
    if (types.includes('boolean'))
      return [{ id: 'boolean', kind: 'boolean', label: 'yes or no', schema: it, ...description }];
    const isNumber = types.includes('integer') || types.includes('number');
    return [{ id: 'text', kind: 'text', label: 'value', schema: it, isNumber, ...description }];
  }

  /** Returns the form that a value has; null if it has none of them. */
  match(alternatives: readonly Alternative[], value: Json | undefined): Alternative | null {
    if (value === undefined) return null;
    const of = (kind: Alternative['kind']): Alternative | null =>
      alternatives.find((it) => it.kind === kind) ?? null;
    const constant = alternatives.find((it) => it.kind === 'const' && it.value === value);
    if (constant) return constant;
    if (typeof value === 'boolean') return of('boolean');
    if (typeof value === 'string' || typeof value === 'number') return of('text');
    if (Array.isArray(value)) return of('list');
    if (isObject(value)) {
      const [key] = Object.keys(value);
      return alternatives.find((it) => it.kind === 'key' && it.key === key) ?? of('object');
    }
    return null;
  }

  /** Returns the headers that `packet` can have, with their descriptions. */
  headers(items: Schema): Array<[string, Schema]> {
    return Object.entries(this.resolve(items).properties ?? {});
  }

  /** Returns whether values of the schema can vary from frame to frame. */
  isField(schema: Schema): boolean {
    return schema.$ref !== undefined && /^#\/\$defs\/(field_|checksum)/.test(schema.$ref);
  }

  /** Returns whether a list has objects with one key each, such as headers and options. */
  isStack(schema: Schema): boolean {
    const it = this.resolve(schema);
    const items = it.items && this.resolve(it.items);
    return items !== undefined && items.maxProperties === 1 && items.properties !== undefined;
  }
}

/** Returns the words of a key. */
export function words(key: string): string {
  return key.replaceAll('_', ' ');
}

/** Returns the default in a description, such as `64`; null if there is none. */
export function defaultOf(description: string | undefined): string | null {
  return /Default: (.+?)\.?$/.exec(description ?? '')?.[1] ?? null;
}

/** Converts what was typed: a number if the schema takes one, else a text. Empty: undefined. */
export function parseInput(text: string, kind: 'integer' | 'number' | 'text'): Json | undefined {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  const isInteger = /^(0|-?[1-9]\d*)$/.test(trimmed);
  const isFraction = kind === 'number' && /^\d+\.\d+$/.test(trimmed);
  const value = Number(trimmed);
  return kind !== 'text' && ((isInteger && Number.isSafeInteger(value)) || isFraction)
    ? value
    : trimmed;
}
