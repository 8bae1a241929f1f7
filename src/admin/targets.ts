import type { HashedSubject } from '../core/operation.js';
import type { BlockEntry, BlockQuery } from '../core/store.js';
import { hashSubject, subjectHash, subjectOfHash } from '../core/subject.js';
import { ask } from '../http/deadline.js';
import type { BlockBook } from './block-book.js';
import type { SubjectInput } from './input.js';
import type { ManagedScope, ManagedScopes, ScopeGroup } from './scopes.js';

/** One subject in one scope. */
export interface Target {
  readonly managed: ManagedScope;
  readonly subject: HashedSubject;
}

export interface Targets {
  readonly targets: readonly Target[];
  /** Subjects that were found: those with a standing block that is meant by a part or by the beginning of a hash. */
  readonly found: number;
  /** There are more than one request handles: ask again. */
  readonly more: boolean;
  /** Scopes whose store keeps no list of blocks: nobody can be found in them by one part. */
  readonly unlisted: readonly string[];
}

/** Blocks that one request finds by part at most. */
const MOST_FOUND = 1000;
const PAGE = 500;

/**
 * Whom an operator means, in the scopes named. A whole key or a hash means one subject, blocked or not; a single part means
 * every block that stands on a key with this part.
 */
export async function findTargets(
  scopes: ManagedScopes,
  { parts, hash, part }: SubjectInput,
  scope: string | undefined,
): Promise<Targets> {
  const only = scope === undefined ? undefined : scopes.get(scope);
  const targets: Target[] = [];
  const unlisted: string[] = [];
  let more = false;
  const subjects = new Set<string>();
  for (const group of scopes.groups) {
    const wanted = only === undefined ? group.scopes : group.scopes.filter(managed => managed === only);
    if (wanted.length === 0) continue;
    if (part === undefined) {
      const subject = hash === undefined ? hashSubject(parts, group.hashing) : subjectOfHash(hash);
      targets.push(...wanted.map(managed => ({ managed, subject })));
      continue;
    }
    const { secret, ipv6Prefix } = group.hashing;
    const found = await blocksOf(
      group,
      wanted,
      subjectHash(part, secret, ipv6Prefix),
      MOST_FOUND - targets.length,
    );
    targets.push(...found.targets);
    for (const { subject } of found.targets) subjects.add(subject.hash);
    more ||= found.more;
    if (found.unlisted) unlisted.push(...wanted.map(managed => managed.scope));
  }
  return { targets, found: part === undefined ? 1 : subjects.size, more, unlisted };
}

/** Subjects that the beginning of a hash may mean at most. */
const MOST_ALIKE = 20;

/** Whom the beginning of a hash means, among those who are blocked: no store finds others by it. */
export async function findBeginningWith(
  scopes: ManagedScopes,
  book: BlockBook,
  prefix: string,
  scope: string | undefined,
): Promise<Targets> {
  const wanted = scope === undefined ? scopes.all : [scopes.get(scope)];
  const hashes = await book.beginningWith(prefix, MOST_ALIKE + 1);
  const subjects = hashes.slice(0, MOST_ALIKE).map(subjectOfHash);
  return {
    targets: subjects.flatMap(subject => wanted.map(managed => ({ managed, subject }))),
    found: subjects.length,
    more: hashes.length > MOST_ALIKE,
    unlisted: [],
  };
}

async function blocksOf(
  group: ScopeGroup,
  wanted: readonly ManagedScope[],
  part: string,
  most: number,
): Promise<{ targets: Target[]; more: boolean; unlisted: boolean }> {
  const targets: Target[] = [];
  let query: BlockQuery = { part, count: PAGE };
  for (;;) {
    const page = await ask(() => group.store.blocked(query));
    for (const entry of page.blocks) {
      const managed = managedOf(wanted, entry);
      if (managed === undefined) continue;
      if (targets.length === most) return { targets, more: true, unlisted: false };
      targets.push({ managed, subject: subjectOfHash(entry.subjectHash) });
    }
    if (page.cursor === undefined) return { targets, more: false, unlisted: page.unlisted === true };
    query = { ...query, cursor: page.cursor };
  }
}

function managedOf(scopes: readonly ManagedScope[], { scope }: BlockEntry): ManagedScope | undefined {
  return scopes.find(managed => managed.scope === scope);
}
