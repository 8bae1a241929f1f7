import { redisContenders } from '../contenders/redis.mjs';
import { checkAtOnce, checkContender, runnerOf } from '../measure/check.mjs';
import { paired } from '../measure/paired.mjs';
import { startRedis } from '../measure/redis-server.mjs';
import { ask, subjectsOf } from '../measure/requests.mjs';
import { target } from '../report/target.mjs';

const SUBJECTS = 1000;
/** One attacker in each burst, not a thousand: a refusal is repeated from memory for a second. */
const ATTACKERS = 20;

export default async function redisSection({ rounds, redisBurst }) {
  const redis = await startRedis();
  try {
    const contenders = await redisContenders(redis.open);
    const where = `Redis ${await redis.version()}, ioredis, one connection.`;
    const tables = [
      await atOnce(redis, contenders, { rounds, burst: redisBurst, lanes: 64 }),
      await oneByOne(redis, contenders, { rounds, burst: Math.ceil(redisBurst / 5) }),
    ];
    return tables.map(table => ({ ...table, note: `${table.note} ${where}` }));
  } finally {
    await redis.stop();
  }
}

/** Checks all, times all, and checks that all was counted. */
async function timed(redis, contenders, options, more = []) {
  for (const contender of contenders) {
    await checkContender(contender);
    await checkAtOnce(contender);
  }
  const runners = contenders.map(contender => ({
    ...runnerOf(contender, subjectsOf(SUBJECTS), SUBJECTS),
    commands: contender.commands,
  }));
  const all = [...runners, ...more];
  const runs = await paired(all, { ...options, gauges: ({ commands }) => redis.used(commands) });
  for (const runner of runners) await runner.verify();
  return runs;
}

const COLUMNS = [
  { key: 'cpu', label: 'CPU, µs', digits: 1 },
  { key: 'ratio', label: '× INCR', digits: 2 },
  { key: 'server', label: 'server: commands, µs', digits: 1 },
  { key: 'serverCpu', label: 'server: CPU, µs', digits: 1 },
];

const rowOf = (runs, { name, own }, yardstick, targets) => ({
  name,
  own,
  cpu: runs.each(name, 'cpu'),
  ratio: runs.ratio(name, yardstick.name),
  server: runs.each(name, 'server'),
  serverCpu: runs.each(name, 'serverCpu'),
  targets,
});

async function atOnce(redis, contenders, options) {
  const { incrAuto, incr, middleware, middlewareThree, limiter, limiterThree } = contenders;
  const counting = [
    incrAuto,
    incr,
    middleware,
    middlewareThree,
    limiter,
    limiterThree,
    contenders.flexibleAuto,
    contenders.flexible,
    contenders.expressAuto,
    contenders.express,
  ];
  const attacker = subjectsOf(ATTACKERS);
  const { consume, handler } = await contenders.blocked(
    Array.from({ length: ATTACKERS }, (_, i) => attacker(i)),
  );
  const blocked = [
    {
      name: 'limitkeeper, middleware, blocked',
      own: true,
      commands: middleware.commands,
      run: i => ask(handler, attacker(i)),
      isRight: res => !res.passed,
    },
    {
      name: 'limitkeeper, consume, blocked',
      own: true,
      commands: middleware.commands,
      run: i => consume(attacker(i)),
      isRight: ({ reason, degraded }) => reason === 'blocked' && degraded === undefined,
    },
  ];
  const runs = await timed(redis, counting, options, blocked);
  const ratio = (one, other) => runs.ratio(one.name, other.name);
  const targets = new Map([
    [middleware, [target(ratio(middleware, incrAuto), 1.3, '× INCR')]],
    [middlewareThree, [target(ratio(middlewareThree, middleware), 2, '× one rule')]],
    [limiter, [target(ratio(limiter, incrAuto), 1, '× INCR')]],
    [limiterThree, [target(ratio(limiterThree, limiter), 1.6, '× one rule')]],
    [blocked[0], [target(ratio(blocked[0], incrAuto), 0.4, '× INCR')]],
    [blocked[1], [target(ratio(blocked[1], incrAuto), 0.25, '× INCR')]],
  ]);
  return {
    id: 'redis-64',
    title: 'Redis, 64 at once',
    note: 'Beside an auto-pipelined INCR. Blocked subjects are refused from memory for a second.',
    columns: COLUMNS,
    rows: [...counting, ...blocked].map(contender =>
      rowOf(runs, contender, incrAuto, targets.get(contender)),
    ),
  };
}

async function oneByOne(redis, contenders, options) {
  const { incr, middleware, limiter, flexible, flexibleConsume, express } = contenders;
  const all = [incr, middleware, limiter, flexible, flexibleConsume, express];
  const runs = await timed(redis, all, options);
  const against = (one, other) => [
    target(runs.ratio(one.name, other.name), 1.2, `× ${other.name}`),
    target(runs.ratio(one.name, other.name, 'server'), 1, `× ${other.name}, commands in the server`),
    target(runs.ratio(one.name, other.name, 'serverCpu'), 1, `× ${other.name}, CPU of the server`),
  ];
  const targets = new Map([
    [middleware, against(middleware, flexible)],
    [
      limiter,
      [...against(limiter, flexibleConsume), target(runs.ratio(limiter.name, incr.name), 1.3, '× INCR')],
    ],
  ]);
  return {
    id: 'redis-1',
    title: 'Redis, one at a time',
    note: 'Beside a plain INCR.',
    columns: COLUMNS,
    rows: all.map(contender => rowOf(runs, contender, incr, targets.get(contender))),
  };
}
