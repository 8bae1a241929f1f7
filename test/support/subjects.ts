import { hashSubject } from '../../src/core/subject.js';
import type { HashedSubject, Operation } from '../../src/core/operation.js';
import type { Reading } from '../../src/core/decision.js';
import type { Rule, RuleSettings, Plan } from '../../src/core/rule.js';
import { RuleTemplate } from '../../src/core/rule.js';
import { applyBatch } from '../../src/testing/batch.js';
import type { SyncStore } from '../../src/core/store.js';

export const subject = (...parts: string[]): HashedSubject => hashSubject(parts, {});

/** A hash that no one worked out: for floods of subjects, where hashing would be most of the time. */
export const cheapSubject = (n: number): HashedSubject => ({
  hash: n.toString(16).padStart(64, '0'),
  partHashes: [],
});

/** A rule of 10 a minute, sliding window, scope `s`, with what differs. */
export function rule(differs: Partial<RuleSettings & Plan> = {}): Rule {
  const { limit = 10, windowSec = 60, ...settings } = differs;
  return new RuleTemplate({ scope: 's', ...settings }).at({ limit, windowSec });
}

/** One operation on one rule and subject of a store that answers at once. */
export function one(
  store: SyncStore,
  item: { rule: Rule; subject: HashedSubject; operation: Operation },
): Reading {
  return applyBatch(store, [item]).readings[0]!;
}

export const consume = (cost: number): Operation => ({ type: 'consume', cost });
export const peek = (cost: number): Operation => ({ type: 'peek', cost });
