import type { NextFunction, Request, Response } from 'express';
import type { Decision } from '../core/decision.js';
import { Limiter } from '../core/limiter.js';
import type { StoreFactories } from '../core/limiter-options.js';
import { chain, isPromise } from '../core/maybe-promise.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import { limiterOptions, requestRules } from './options.js';
import { markRefusal } from './outcome.js';
import { refuse } from './refuse.js';
import { LimiterRun, stateOf } from './request-state.js';
import type { RequestState } from './request-state.js';
import { resolveRules } from './resolve.js';
import { hasLooseEnds, settleBeforeEnd } from './settle.js';
import type { RateLimitHandler, RateLimitOptions } from './types.js';
import { CreationWatch, ProxyWatch, warnAboutStore, warnOnce } from './warnings.js';

/** Makes `rateLimit` for the face, which hands the stores in. */
export function middlewareMaker(factories: StoreFactories): (options: RateLimitOptions) => RateLimitHandler {
  return options => {
    const rules = requestRules(options);
    const { skip, countPreflight = false, onLimited, message, outcome, headers } = options;
    const limiter = new Limiter(limiterOptions(options, rules), factories);
    const { engine, hashing, scopes } = limiter;
    const proxyWatch = new ProxyWatch();
    const creationWatch = new CreationWatch();
    warnAboutStore(engine.store);

    const limitRequest = (req: Request, res: Response, next: NextFunction): void => {
      const state = stateOf(req);
      if (state.runs.has(limiter)) {
        // Mounted twice on the way of this request: it is one request, and counts once.
        warnOnce('LIMITKEEPER_MOUNTED_TWICE');
        next();
        return;
      }
      const run = new LimiterRun(engine, scopes, headers);
      state.runs.set(limiter, run);
      creationWatch.observe();
      proxyWatch.observe(req);
      // Only errors of the user's callbacks come here: `next` itself, and what it calls, runs outside.
      const failed = (error: unknown): void => {
        next(error);
      };
      settleWith(
        () => decideRequest(run, req, res),
        goOn => {
          goOn(state, next);
        },
        failed,
      );
    };

    /** Answers what is left to do, so that the handlers behind `next` run outside of our error handling. */
    const decideRequest = (run: LimiterRun, req: Request, res: Response): MaybePromise<GoOn> => {
      if (!countPreflight && isPreflight(req)) return pass;
      return chain(skip?.(req, res), skipped => {
        // Strictly true: a listener, an object or a forgotten comparison must not switch the limiter off.
        if (skipped === true) return pass;
        return chain(resolveRules(rules, req, res, hashing), ruleRuns =>
          chain(engine.decide(ruleRuns.map(({ item }) => item)), decision => {
            run.decided(decision, ruleRuns);
            return (state: RequestState, next: NextFunction) => {
              answer(run, decision, state, req, res, next);
            };
          }),
        );
      });
    };

    const answer = (
      run: LimiterRun,
      decision: Decision,
      state: RequestState,
      req: Request,
      res: Response,
      next: NextFunction,
    ): void => {
      state.writeHeaders(res);
      if (decision.allowed) {
        if (hasLooseEnds(run)) settleBeforeEnd(run, state, outcome, req, res);
        next();
        return;
      }
      markRefusal(res, true);
      if (onLimited === undefined || decision.reason === 'unavailable') {
        refuse(req, res, decision, message);
        return;
      }
      const before = res.statusCode;
      if (!res.headersSent) res.statusCode = 429;
      let left = false;
      const letGo: NextFunction = (...args: unknown[]): void => {
        if (left) return;
        left = true;
        run.letGo = true;
        run.silent = true;
        markRefusal(res, false);
        if (!res.headersSent) res.statusCode = before;
        state.writeHeaders(res);
        if (hasLooseEnds(run)) settleBeforeEnd(run, state, outcome, req, res);
        (next as (...rest: unknown[]) => void)(...args);
      };
      settleWith(
        () => onLimited(req, res, letGo, decision),
        () => undefined,
        letGo,
      );
    };

    return Object.assign(limitRequest, { limiter });
  };
}

/** What a request does once it is decided. */
type GoOn = (state: RequestState, next: NextFunction) => void;

const pass: GoOn = (_state, next) => {
  next();
};

/** Calls `then` with the result of `work`, or `failed` with its error: one of them, once, and no error of `then` itself. */
function settleWith<T>(
  work: () => MaybePromise<T>,
  then: (value: T) => void,
  failed: (error: unknown) => void,
): void {
  let result: MaybePromise<T>;
  try {
    result = work();
  } catch (error) {
    failed(error);
    return;
  }
  if (isPromise(result)) result.then(then, failed);
  else then(result);
}

/** A CORS preflight (Fetch standard): the browser asks on its own, and shows nobody the answer. */
function isPreflight(req: Request): boolean {
  return (
    req.method === 'OPTIONS' &&
    req.headers.origin !== undefined &&
    req.headers['access-control-request-method'] !== undefined
  );
}
