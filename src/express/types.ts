import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { Decision } from '../core/decision.js';
import type { Limiter } from '../core/limiter.js';
import type { LimiterSettings } from '../core/limiter-options.js';
import type { Plan, RuleSettings } from '../core/rule.js';
import type { SubjectKey } from '../core/subject.js';
import type { HeaderOptions } from './headers.js';

/** What a request turned out to be, once its response ends. `ignore` counts as neither. */
export type RequestOutcome = 'success' | 'failure' | 'ignore';

type Callback<T> = (req: Request, res: Response) => T | Promise<T>;

interface RuleBase extends RuleSettings {
  /** Who is counted. Default: the client's address, see `clientIp`. */
  readonly keyFn?: Callback<SubjectKey>;
  /** `false`: this rule is no part of this request. */
  readonly when?: Callback<boolean>;
  /** Units that a request takes, a whole number ≥ 0. Default 1. */
  readonly cost?: number | Callback<number>;
  /**
   * Holds the cost while the handler runs; it settles the real one with `getRateLimit(req).settle(n)`. Where it does not,
   * the estimate is charged when the response ends. Default false.
   */
  readonly reserve?: boolean;
  /** Which requests count, by their `outcome`. Default `all`. */
  readonly count?: 'all' | 'failures' | 'successes';
  /**
   * For rules that count by outcome. `true` (default): reserve first, so that parallel guesses cannot overshoot. `false`:
   * look first and charge afterwards, so that parallel good requests never wait for each other.
   */
  readonly strict?: boolean;
  /** A success forgives this rule's subject: counter, strikes and automatic block. Needs `outcome` and a `keyFn`. */
  readonly resetOnSuccess?: boolean;
}

interface FixedNumbers {
  /** Units a window, a whole number; 0 refuses all. A function is asked for each request. */
  readonly limit: number | Callback<number>;
  /**
   * Seconds, in whole milliseconds: 0.5 is half a second. At most 10 years.
   *
   * With a small limit take `algorithm: 'fixed-window'`: the default, `sliding-window`, lets the window before fade, so that
   * a client who has used up the limit at once waits for a window and a `limit`th of it (`limit: 1, windowSec: 60`: 120 s),
   * where a fixed window is over after 60 s.
   */
  readonly windowSec: number;
  readonly plan?: never;
}

interface PlannedNumbers {
  /** The numbers of this request, e.g. those of the account's tariff; `'unlimited'` leaves the rule out. */
  readonly plan: Callback<Plan | 'unlimited'>;
  readonly limit?: never;
  readonly windowSec?: never;
}

/** One rule of the middleware. */
export type RuleOptions = RuleBase & (FixedNumbers | PlannedNumbers);

interface MiddlewareSettings extends LimiterSettings {
  /** What a request turned out to be; required where a rule counts by outcome. `byStatus` goes by the status code. */
  readonly outcome?: (req: Request, res: Response) => RequestOutcome;
  /** Strictly `true` passes the request uncounted. */
  readonly skip?: Callback<boolean>;
  /**
   * Count CORS preflights like any request. Default true; CORS middleware before the limiter answers them itself, and then
   * they never come here.
   *
   * `false` leaves them out, and **anyone can forge one**: every handler behind the limiter that runs for `OPTIONS`
   * (mounted with `app.use` or `app.all`, a proxy, GraphQL over the query string, or any at all where `method-override`
   * behind the limiter makes `POST` of it) then runs without a limit. Only for routes where nothing does work for
   * `OPTIONS`. A request with a body, a `Cookie` or `Authorization` counts in any case: browsers send no such preflight.
   */
  readonly countPreflight?: boolean;
  /**
   * Answers a refused request in place of the 429: a captcha, a redirect, a localized text (the status is 429 already, and
   * the headers are set). `next()` lets the request go on uncounted; its outcome still counts. It may be async; what it
   * returns is ignored, so `(req, res) => res.json(…)` will do.
   */
  readonly onLimited?: (req: Request, res: Response, next: NextFunction, decision: Decision) => unknown;
  /** A sentence for people: the `message` of the JSON body of a refusal, the `detail` of its problem form. */
  readonly message?: string;
  /** Which headers are sent; `false`: none. */
  readonly headers?: HeaderOptions;
}

/** Options of `rateLimit`: those of one rule, or a list of rules that are decided together, all or none. */
export type RateLimitOptions = MiddlewareSettings &
  (RuleOptions | { readonly rules: readonly RuleOptions[] });

/** What is needed of an open socket of the package `ws`. */
export interface WebSocketLike {
  close(code?: number, reason?: string): void;
  once(event: 'close', listener: () => void): unknown;
}

/** What operators do most, on the middleware itself. */
export const HANDLER_VERBS = [
  'peek',
  'block',
  'unblock',
  'reset',
  'forgive',
  'inspect',
  'resetAll',
  'on',
  'close',
] as const satisfies readonly (keyof Limiter)[];

/**
 * The middleware, with the verbs of its limiter (`limit.reset(key)`, `limit.on('blocked', …)`) and the limiter itself. It
 * goes wherever Express takes a `RequestHandler`, and asks for no more than node's own types: as a handler of `Request` with
 * any parameters it would, in `app.get('/users/:id', limit, handler)`, hide from TypeScript that `req.params.id` is a string.
 */
export interface RateLimitHandler extends Pick<Limiter, (typeof HANDLER_VERBS)[number]> {
  (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void): void;
  /** As `app.ws` of express-ws calls it: a refused socket is closed with code 1013 and `429` in the reason. */
  (socket: WebSocketLike, req: IncomingMessage, next: (error?: unknown) => void): void;
  readonly limiter: Limiter;
}
