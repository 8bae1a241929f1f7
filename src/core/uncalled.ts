import { typeError } from './errors.js';

/**
 * Express hands a request, or a socket of express-ws, to what should have been called first: `app.use(rateLimit)`. Told by
 * shape, and apart from options, of which none is called so.
 *
 * @throws TypeError that says what to write.
 */
export function refuseRequest(options: object, advice: string): void {
  const { on, method, readyState } = options as { on?: unknown; method?: unknown; readyState?: unknown };
  if (typeof on !== 'function' || (typeof method !== 'string' && typeof readyState !== 'number')) return;
  throw typeError(
    'ERR_LIMITKEEPER_OPTION_TYPE',
    `options must be an object of options, got a request. ${advice}`,
    { option: 'options' },
  );
}
