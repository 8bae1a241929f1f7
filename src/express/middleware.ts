import type { NextFunction, Request, Response } from 'express';
import type { StoreFactories } from '../core/limiter-options.js';
import { chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { Verdict } from '../core/verdict.js';
import { warnOnce } from '../core/warn-once.js';
import { asFailure } from './failure.js';
import { isPreflight } from './preflight.js';
import { refuse } from './refuse.js';
import { RequestLimiter } from './request-limiter.js';
import { LimiterRun, stateOf } from './request-state.js';
import { resolveRules } from './resolve.js';
import { settleBeforeEnd } from './settle.js';
import { HANDLER_VERBS } from './types.js';
import type { RateLimitHandler, RateLimitOptions, WebSocketLike } from './types.js';
import { holdMessages, isWebSocket, speakForSocket, standsForSocket } from './web-socket.js';
import { warnAboutStore } from './warnings.js';

/** Makes `rateLimit` for the face, which hands the stores in. */
export function middlewareMaker(factories: StoreFactories): (options: RateLimitOptions) => RateLimitHandler {
  return options => {
    const limiter = new RequestLimiter(options, factories);
    warnAboutStore(limiter.engine.store);
    if (limiter.hasLooseEnds) limiter.settler = { settle: settleBeforeEnd };
    // Express hands over its own requests, whatever the type of the handler says.
    const handler = (
      req: Request | WebSocketLike,
      res: Response | Request,
      next: (error?: unknown) => void,
    ): void => {
      if (isWebSocket(req)) {
        const request = res as Request;
        // express-ws has given it a response that stands for the socket, one for all limiters on the way.
        limitRequest(limiter, request, request.res as Response, next);
      } else limitRequest(limiter, req, res as Response, next);
    };
    const { core } = limiter;
    const verbs = Object.fromEntries(HANDLER_VERBS.map(verb => [verb, core[verb].bind(core)]));
    return Object.assign(handler as RateLimitHandler, verbs, { limiter: core });
  };
}

function limitRequest(limiter: RequestLimiter, req: Request, res: Response, next: NextFunction): void {
  const state = stateOf(req);
  if (state.has(limiter)) {
    // Mounted twice on the way of this request: it is one request, and counts once.
    warnOnce('LIMITKEEPER_MOUNTED_TWICE');
    next();
    return;
  }
  state.response = res;
  const run = new LimiterRun(limiter, state, req, res, next);
  state.add(run);
  limiter.creationWatch.observe();
  limiter.proxyWatch?.observe(req);
  const release = standsForSocket(res) ? limitSocket(req, res) : undefined;
  let verdict: MaybePromise<Verdict | undefined>;
  try {
    verdict = decideRequest(run);
  } catch (error) {
    release?.();
    next(asFailure(error));
    return;
  }
  if (isPromise(verdict)) answerLater(run, verdict, release);
  else {
    release?.();
    // What the handlers behind `next` throw is theirs: it goes to the caller, as in any middleware.
    answer(run, verdict);
  }
}

/** Whatever the handlers behind `next` throw then would be an unhandled rejection, as in any async middleware. */
function answerLater(
  run: LimiterRun,
  verdict: Promise<Verdict | undefined>,
  release: (() => void) | undefined,
): void {
  const { next } = run;
  let passed = false;
  run.next = (...args: unknown[]): void => {
    passed = true;
    (next as (...rest: unknown[]) => void)(...args);
  };
  verdict
    .then(decided => {
      release?.();
      answer(run, decided);
    })
    .catch((error: unknown) => {
      if (passed) throw error;
      release?.();
      run.next(asFailure(error));
    });
}

/** @returns `undefined` where the request passes unasked */
function decideRequest(run: LimiterRun): MaybePromise<Verdict | undefined> {
  const { limiter, req, res } = run;
  if (limiter.passesPreflights && isPreflight(req)) return undefined;
  const { skip } = limiter.options;
  if (skip === undefined) return decideRules(run);
  // Strictly true: a listener, an object or a forgotten comparison must not switch the limiter off.
  return chain(skip(req, res) as MaybePromise<unknown>, skipped =>
    skipped === true ? undefined : decideRules(run),
  );
}

function decideRules(run: LimiterRun): MaybePromise<Verdict> {
  const { rules, hashing, engine } = run.limiter;
  const checks = resolveRules(rules, run.req, run.res, hashing);
  if (isPromise(checks)) {
    return checks.then(resolved => {
      run.asks(resolved);
      return engine.decide(run.checks);
    });
  }
  run.asks(checks);
  return engine.decide(run.checks);
}

function answer(run: LimiterRun, verdict: Verdict | undefined): void {
  if (verdict === undefined) {
    run.next();
    return;
  }
  const { limiter, state } = run;
  run.verdict = verdict;
  limiter.twiceWatch.observe(run, state.runs);
  state.writeHeaders();
  if (!verdict.allowed) refuse(run, verdict);
  else {
    if (run.hasLooseEnds) limiter.settler?.settle(run);
    run.next();
  }
}

/** A request that has become a socket. Answers what lets its messages come once it is decided. */
function limitSocket(req: Request & { readonly ws?: object }, res: Response): () => void {
  if (req.ws !== undefined && isWebSocket(req.ws)) speakForSocket(res, req.ws);
  return holdMessages(req);
}
