import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod/mini';
import { parse, parseQuery } from '../http/input.js';
import { presentedKeys } from '../http/keys.js';
import type { Keyring } from '../http/keys.js';
import { ok, problem, refuse } from '../http/reply.js';
import type { Reply } from '../http/reply.js';
import type { RateChecks } from './rate-checks.js';

/** A request as the routes see it: no Express, no socket. */
export interface RateRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: URLSearchParams;
  /** The body as JSON. @throws Refusal where it is none. */
  readonly body: () => Promise<unknown>;
}

/** Digits without a leading zero, however many: never taken for a number, which would round. */
const USER_ID = /^[1-9][0-9]*$/;
const MOST_CHARACTERS = 128;
const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
const REDUCED_CAPACITY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity';

const endpoint = z.string().check(
  z.minLength(1),
  // Characters, not UTF-16 units: 128 emoji are 128.
  z.refine(
    text => Array.from(text).length <= MOST_CHARACTERS,
    `must have at most ${String(MOST_CHARACTERS)} characters`,
  ),
);

const checkBody = z.object({ endpoint });
const statusQuery = z.object({ endpoint });
const resetQuery = z.object({ endpoint: z.optional(endpoint) });

/** `serviceKeys: undefined`: no key is asked of services. */
export interface RateKeys {
  readonly adminKeys: Keyring;
  readonly serviceKeys: Keyring | undefined;
}

/**
 * Answers a request, or `undefined` where it is for somebody else. Checks come in a fixed order: the key before anything
 * that it protects, then who asks, then what is asked.
 */
export async function serve(
  checks: RateChecks,
  keys: RateKeys,
  request: RateRequest,
): Promise<Reply | undefined> {
  const { method, path } = request;
  if (path === '/rate/check') {
    checkServiceKey(keys, request);
    return method === 'POST' ? check(checks, request) : notAllowed('POST');
  }
  if (path === '/rate/status') {
    checkServiceKey(keys, request);
    return method === 'GET' || method === 'HEAD' ? status(checks, request) : notAllowed('GET');
  }
  if (path === '/rate/reset' || path.startsWith('/rate/reset/')) {
    checkAdminKey(keys, request);
    return method === 'DELETE' ? reset(checks, request) : notAllowed('DELETE');
  }
  return undefined;
}

async function check(checks: RateChecks, request: RateRequest): Promise<Reply> {
  const userId = userOf(request);
  const { endpoint: name } = parse(checkBody, await request.body());
  const verdict = await checks.check(userId, name);
  switch (verdict.kind) {
    case 'allowed':
      return ok({ allowed: true, ...verdict.usage });
    case 'refused':
      return problem(
        429,
        'The user has no request left at this endpoint.',
        { type: QUOTA_EXCEEDED, allowed: false, ...verdict.usage },
        verdict.retryAfterSec === null ? {} : { 'Retry-After': String(verdict.retryAfterSec) },
      );
    case 'uncounted':
      return verdict.allowed
        ? ok({ allowed: true, degraded: true })
        : problem(
            503,
            'The store did not answer.',
            { type: REDUCED_CAPACITY, allowed: false },
            { 'Retry-After': '1' },
          );
  }
}

async function status(checks: RateChecks, request: RateRequest): Promise<Reply> {
  const userId = userOf(request);
  const { endpoint: name } = parseQuery(statusQuery, request.query);
  return ok(await checks.status(userId, name));
}

async function reset(checks: RateChecks, { path, query }: RateRequest): Promise<Reply> {
  const userId = decoded(path.slice('/rate/reset/'.length));
  if (!USER_ID.test(userId))
    refuse(404, 'There is no such user: an id is a positive decimal number without leading zeros.');
  const { endpoint: name } = parseQuery(resetQuery, query);
  return ok({ userId, reset: await checks.reset(userId, name) });
}

function userOf({ headers }: RateRequest): string {
  const id = headers['x-user-id'];
  if (typeof id !== 'string' || id === '') refuse(400, 'The header X-User-Id is missing.');
  if (!USER_ID.test(id)) {
    refuse(400, 'The header X-User-Id must be a positive decimal number without leading zeros.');
  }
  return id;
}

function checkServiceKey({ serviceKeys }: RateKeys, { headers }: RateRequest): void {
  if (serviceKeys === undefined || serviceKeys.opensFor(presentedKeys(headers, 'x-service-key'))) return;
  refuse(403, 'A valid service key is needed, as X-Service-Key or Authorization: Bearer.');
}

function checkAdminKey({ adminKeys }: RateKeys, { headers }: RateRequest): void {
  const opens = adminKeys.opensFor(presentedKeys(headers, 'x-admin-key'));
  if (opens) return;
  refuse(
    403,
    adminKeys.isEmpty
      ? 'Closed: no admin key is configured. Set the option adminKey to a secret of 16 characters or more.'
      : 'A valid admin key is needed, as X-Admin-Key or Authorization: Bearer.',
  );
}

/** What is no percent-encoding stays as it is, and is no user. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function notAllowed(method: string): Reply {
  return problem(405, 'This route has no such method.', {}, { Allow: method });
}
