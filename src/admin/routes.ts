import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import { parse, parseQuery } from '../http/input.js';
import { ok } from '../http/reply.js';
import type { Reply } from '../http/reply.js';
import { BlockBook } from './block-book.js';
import type { EventHub } from './event-hub.js';
import type { SubjectInput } from './input.js';
import { blockBody, blocksQuery, scopesQuery, statusBody, statusQuery, subjectBody } from './input.js';
import { block, checkEnforced, reset, standingBlocks, statusOf, unblock } from './operations.js';
import type { Access } from './options.js';
import type { ManagedScope, ManagedScopes } from './scopes.js';
import { findBeginningWith, findTargets } from './targets.js';
import type { Targets } from './targets.js';
import { STEP_SEC } from './totals.js';
import type { Watch } from './watch.js';

/** A request as the routes see it: no Express, no socket. */
export interface AdminRequest {
  readonly access: Access;
  readonly query: URLSearchParams;
  /** The body as JSON. @throws Refusal where it is none. */
  readonly body: () => Promise<unknown>;
}

/** An answer that goes on until somebody closes it. */
export type Stream = (res: ServerResponse) => void;

export interface Route {
  /** GET routes are open to read-only keys. */
  readonly method: 'GET' | 'POST';
  readonly run: (request: AdminRequest) => Promise<Reply | Stream>;
}

const BLOCKS_PER_PAGE = 100;
const WHOLE_HASH = 64;
const now = (): { readonly at: number } => ({ at: Date.now() });

/** Every route that needs a key, by path. */
export function adminRoutes(
  scopes: ManagedScopes,
  watch: Watch,
  hub: EventHub,
): ReadonlyMap<string, readonly Route[]> {
  // Several machines may have processes of the same number.
  const instance = `${hostname()}:${String(process.pid)}:${randomBytes(3).toString('hex')}`;
  const since = Date.now();
  const book = new BlockBook(scopes);

  const listScopes = async ({ access, query }: AdminRequest): Promise<Reply> => {
    const { recent } = parseQuery(scopesQuery, query);
    const step = performance.now();
    return ok({
      ...now(),
      instance,
      since,
      access,
      ...(recent === '1' ? { stepSec: STEP_SEC } : {}),
      requests: {
        totals: watch.requests.totals,
        ...(recent === '1' ? { recent: watch.requests.recent(step) } : {}),
      },
      scopes: scopes.all.map(managed => ({
        ...describe(managed, watch),
        totals: managed.counts.totals,
        ...(recent === '1' ? { recent: managed.counts.verdicts.recent(step) } : {}),
      })),
    });
  };

  const statusByBody = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope } = parse(statusBody, await body());
    return statusOfSubject(subject, scope);
  };

  const statusByHash = async ({ query }: AdminRequest): Promise<Reply> => {
    const { hash, scope } = parseQuery(statusQuery, query);
    return statusOfSubject({ hash }, scope);
  };

  const statusOfSubject = async (subject: SubjectInput, scope: string | undefined): Promise<Reply> => {
    const { hash } = subject;
    const found =
      hash === undefined || hash.length === WHOLE_HASH
        ? await findTargets(scopes, subject, scope)
        : await findBeginningWith(scopes, book, hash, scope);
    return ok({ ...now(), readings: await statusOf(found.targets), ...foundBy(found, subject) });
  };

  const resetSubject = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope } = parse(subjectBody, await body());
    const found = await findTargets(scopes, subject, scope);
    const removed = await reset(found.targets);
    tell('reset', removed);
    return ok({ removed, ...foundBy(found, subject) });
  };

  const blockSubject = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope, blockSec } = parse(blockBody, await body());
    checkEnforced(scopes.get(scope));
    const found = await findTargets(scopes, subject, scope);
    const blocked = await block(found.targets, blockSec === undefined ? null : Math.round(blockSec * 1000));
    tell('blocked', blocked, { manual: true });
    return ok({ blocked, ...foundBy(found, subject) });
  };

  const unblockSubject = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope } = parse(subjectBody, await body());
    const found = await findTargets(scopes, subject, scope);
    const unblocked = await unblock(found.targets);
    tell('unblocked', unblocked);
    return ok({ unblocked, ...foundBy(found, subject) });
  };

  const whoIsBlocked = async ({ query }: AdminRequest): Promise<Reply> => {
    const { scope, cursor, count = BLOCKS_PER_PAGE } = parseQuery(blocksQuery, query);
    const page = await book.page(count, cursor, scope);
    const blocks = await standingBlocks(page.blocks);
    return ok({
      ...now(),
      // One that has ended since the lists were read is not on the page, and not counted either.
      total: page.total - (page.blocks.length - blocks.length),
      complete: page.complete,
      before: page.before,
      blocks,
      ...(page.cursor === undefined ? {} : { cursor: page.cursor }),
      counts: [...page.counts].map(([{ scope: name, entry }, blocked]) => ({
        scope: name,
        mode: entry.template.mode,
        blocked,
      })),
      unlisted: page.unlisted,
    });
  };

  const tell = (
    type: 'reset' | 'blocked' | 'unblocked',
    done: readonly { readonly subjectHash: string; readonly scope: string }[],
    more: object = {},
  ): void => {
    book.outdated();
    for (const { subjectHash, scope } of done) hub.tell({ type, ...now(), scope, subjectHash, ...more });
  };

  return new Map<string, readonly Route[]>([
    ['/scopes', [{ method: 'GET', run: listScopes }]],
    [
      '/status',
      [
        { method: 'GET', run: statusByHash },
        { method: 'POST', run: statusByBody },
      ],
    ],
    ['/reset', [{ method: 'POST', run: resetSubject }]],
    ['/block', [{ method: 'POST', run: blockSubject }]],
    ['/unblock', [{ method: 'POST', run: unblockSubject }]],
    ['/blocks', [{ method: 'GET', run: whoIsBlocked }]],
    [
      '/events',
      [
        {
          method: 'GET',
          run: async () => res => {
            hub.add(res);
          },
        },
      ],
    ],
  ]);
}

/** How many were meant; where nobody was found, in words too: an empty list alone looks like success. */
function foundBy({ found, more, unlisted }: Targets, { part }: SubjectInput): object {
  return { found, more, unlisted, ...(found === 0 ? { detail: nobodyBy(part, unlisted) } : {}) };
}

function nobodyBy(part: SubjectInput['part'], unlisted: readonly string[]): string {
  if (part === undefined) {
    return 'Nobody who is blocked has a hash that begins so. A whole hash of 64 digits finds every subject, blocked or not.';
  }
  const but = unlisted.length === 0 ? '' : ', as far as the stores list blocks';
  return `Nobody is blocked with this part${but}. Who is refused by a counter that is merely used up is found by the whole key: { parts: [...] }.`;
}

/** A rule for people and programs. Its numbers are `null` where they come with each request. */
function describe({ scope, entry, limiters }: ManagedScope, watch: Watch): object {
  const { template, own } = entry;
  const [limiter] = limiters;
  return {
    scope,
    mode: template.mode,
    algorithm: template.algorithm,
    limit: own?.limit ?? null,
    windowSec: own === undefined ? null : own.windowMs / 1000,
    capacity: own?.capacity ?? null,
    blockSec: own === undefined ? null : own.blockMs.map(ms => ms / 1000),
    failMode: limiter.engine.failMode,
    degraded: watch.degraded(limiter) ?? null,
  };
}
