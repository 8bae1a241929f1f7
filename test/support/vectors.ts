import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { VectorCase } from '../../src/testing/index.js';

/** The published sequences of decisions, worked out in exact arithmetic by another implementation. */
export const vectors = JSON.parse(
  readFileSync(join(__dirname, '../fixtures/decisions.json'), 'utf8'),
) as readonly VectorCase[];
