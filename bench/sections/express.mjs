// An Express app with one route a contender, asked over real HTTP by a process of its own. What is measured is this process:
// the server.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import express from 'express';
import * as contenders from '../contenders/middleware.mjs';
import { paired } from '../measure/paired.mjs';

const { version } = createRequire(import.meta.url)('express/package.json');
const LIMIT = 1_000_000;
const client = fileURLToPath(new URL('../measure/load-main.mjs', import.meta.url));

export default async function expressSection({ rounds, quick }) {
  const requests = quick ? 1000 : 4000;
  const { noLimiter, ours, oursLegacy, hit, flexible, expressLegacy, expressDraft8 } = contenders;
  const limiting = [ours, oursLegacy, hit, flexible, expressLegacy, expressDraft8];
  const all = [noLimiter, ...limiting];
  const app = express().set('trust proxy', 1);
  all.forEach(({ middleware }, n) => {
    const handler = (_req, res) => res.send('ok');
    app.get(`/${n}`, middleware(LIMIT), handler);
    app.get(`/${n}/check`, middleware(5), handler);
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const load = fork(client, [String(server.address().port)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const send = async message => {
    load.send(message);
    const [answer] = await once(load, 'message');
    return answer;
  };
  try {
    for (const contender of limiting) await check(contender, `/${all.indexOf(contender)}/check`, send);
    // A burst is one message to the client.
    const runners = all.map(({ name }, n) => ({
      name,
      run: i => send({ path: `/${n}`, requests, from: i * requests }),
      isRight: ({ statuses }) => statuses[200] === requests,
    }));
    const runs = await paired(runners, { rounds, burst: 1 });
    const base = runs.each(noLimiter.name, 'cpu') / requests;
    return {
      title: 'Express, over HTTP',
      note: `Express ${version}, one route with one middleware, 16 connections, 10,000 subjects by X-Forwarded-For. CPU of the server's process.`,
      columns: [
        { key: 'cpu', label: 'CPU a request, µs', digits: 1 },
        { key: 'added', label: 'the limiter’s part, µs', digits: 1 },
        { key: 'ratio', label: '× no limiter', digits: 2 },
      ],
      rows: all.map(({ name, own }) => {
        const ratio = runs.ratio(name, noLimiter.name);
        return { name, own, cpu: runs.each(name, 'cpu') / requests, added: (ratio - 1) * base, ratio };
      }),
    };
  } finally {
    load.kill();
    server.closeAllConnections();
    server.close();
  }
}

async function check({ name, headers }, path, send) {
  const subject = '81.3.0.1';
  const first = await send({ path, requests: 1, from: 0, subject });
  for (const [header, form] of Object.entries(headers)) {
    assert.match(first.headers[header.toLowerCase()] ?? '', form, `${name}: ${header}`);
  }
  const { statuses } = await send({ path, requests: 5, from: 0, subject });
  assert.deepEqual(statuses, { 200: 4, 429: 1 }, `${name}: who passes`);
}
