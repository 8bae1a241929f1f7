import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import { parse, queryObject } from '../http/input.js';
import { ok } from '../http/reply.js';
import type { Reply } from '../http/reply.js';
import { listBlocks } from './block-list.js';
import type { EventHub } from './event-hub.js';
import { blockBody, blocksQuery, scopesQuery, statusQuery, subjectBody } from './input.js';
import { block, checkEnforced, reset, statusOf, unblock } from './operations.js';
import type { Access } from './options.js';
import type { ManagedScope, ManagedScopes } from './scopes.js';
import { findTargets } from './targets.js';
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

  const listScopes = async ({ access, query }: AdminRequest): Promise<Reply> => {
    const { recent } = parse(scopesQuery, queryObject(query));
    const step = performance.now();
    return ok({
      ...now(),
      instance,
      since,
      access,
      ...(recent === '1' ? { stepSec: STEP_SEC } : {}),
      scopes: scopes.all.map(managed => ({
        ...describe(managed, watch),
        totals: managed.counts.totals,
        ...(recent === '1' ? { recent: managed.counts.recent(step) } : {}),
      })),
    });
  };

  const statusByBody = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope } = parse(subjectBody, await body());
    const { targets, more, unlisted } = await findTargets(scopes, subject, scope);
    return ok({ ...now(), readings: await statusOf(targets), more, unlisted });
  };

  const statusByHash = async ({ query }: AdminRequest): Promise<Reply> => {
    const { hash, scope } = parse(statusQuery, queryObject(query));
    const { targets } = await findTargets(scopes, { hash }, scope);
    return ok({ ...now(), readings: await statusOf(targets), more: false, unlisted: [] });
  };

  const resetSubject = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope } = parse(subjectBody, await body());
    const { targets, more, unlisted } = await findTargets(scopes, subject, scope);
    const removed = await reset(targets);
    tell('reset', removed);
    return ok({ removed, more, unlisted });
  };

  const blockSubject = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope, blockSec } = parse(blockBody, await body());
    checkEnforced(scopes.get(scope));
    const { targets, more, unlisted } = await findTargets(scopes, subject, scope);
    const blocked = await block(targets, blockSec === undefined ? null : Math.round(blockSec * 1000));
    tell('blocked', blocked, { manual: true });
    return ok({ blocked, more, unlisted });
  };

  const unblockSubject = async ({ body }: AdminRequest): Promise<Reply> => {
    const { subject, scope } = parse(subjectBody, await body());
    const { targets, more, unlisted } = await findTargets(scopes, subject, scope);
    const unblocked = await unblock(targets);
    tell('unblocked', unblocked);
    return ok({ unblocked, more, unlisted });
  };

  const whoIsBlocked = async ({ query }: AdminRequest): Promise<Reply> => {
    const { scope, cursor, count = BLOCKS_PER_PAGE } = parse(blocksQuery, queryObject(query));
    return ok({ ...now(), ...(await listBlocks(scopes, count, cursor, scope)) });
  };

  const tell = (
    type: 'reset' | 'blocked' | 'unblocked',
    done: readonly { readonly subjectHash: string; readonly scope: string }[],
    more: object = {},
  ): void => {
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
