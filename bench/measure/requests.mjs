// Requests without a network: what a middleware is measured with. The response is Node's own as far as headers go; its end is
// the end of the measurement.
import { EventEmitter } from 'node:events';
import { ServerResponse } from 'node:http';

const app = { get: () => undefined };
const nothing = () => undefined;

class Response extends ServerResponse {
  /** Did the request reach the handler? */
  passed = false;
  done = nothing;

  end() {
    this.emit('finish');
    this.done(this);
    return this;
  }

  status(code) {
    this.statusCode = code;
    return this;
  }

  append(name, value) {
    const before = this.getHeader(name);
    return this.setHeader(name, before === undefined ? value : [before, value].flat());
  }

  send(body) {
    return this.end(body);
  }

  json(body) {
    this.setHeader('Content-Type', 'application/json; charset=utf-8');
    return this.end(JSON.stringify(body));
  }
}

// A connection carries many requests.
const sockets = Array.from({ length: 64 }, () =>
  Object.assign(new EventEmitter(), { remoteAddress: '127.0.0.1', destroyed: false, writable: true }),
);
for (const socket of sockets) socket.setMaxListeners(0);
let count = 0;

const answerOk = (_req, res) => res.end();

/**
 * Sends a request of `ip` through a middleware to a handler; resolves with the response once it has ended.
 *
 * A limiter that hands a refusal on calls `next('refused')`.
 */
export function ask(middleware, ip, handler = answerOk) {
  return new Promise((resolve, reject) => {
    const socket = sockets[count++ % sockets.length];
    const req = {
      ip,
      method: 'GET',
      url: '/',
      originalUrl: '/',
      path: '/',
      baseUrl: '',
      headers: {},
      app,
      socket,
      get: nothing,
      header: nothing,
    };
    const res = new Response(req);
    res.req = req;
    res.socket = socket;
    res.done = resolve;
    middleware(req, res, error => {
      if (error === undefined) {
        res.passed = true;
        handler(req, res);
      } else if (error === 'refused') resolve(res);
      else reject(error);
    });
  });
}

// Not of a private net: a limiter may warn that they are a proxy's.
const address = i => `81.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

/** So many addresses, asked for in an order that is none. */
export function subjectsOf(count) {
  const all = Array.from({ length: count }, (_, i) => address(i));
  return i => all[(i * 7919) % count];
}
