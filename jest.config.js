import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { entries } from './scripts/entries.js';

// A folder named here is a project of its own (`npx jest --selectProjects redis`) from the day it exists;
// every other test belongs to `core`.
const OWN_PROJECTS = ['package', 'redis', 'admin', 'service', 'outbound', 'sql'];

// ES modules without a CommonJS build (got, ky and what got depends on): translated like the sources.
const ESM_ONLY = [
  'got',
  'ky',
  '@sec-ant/readable-stream',
  '@sindresorhus/is',
  'byte-counter',
  'cacheable-lookup',
  'cacheable-request',
  'decompress-response',
  'get-stream',
  'is-stream',
  'lowercase-keys',
  'mimic-response',
  'normalize-url',
  'p-cancelable',
  'responselike',
];

const escape = text => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const shared = {
  testEnvironment: 'node',
  setupFiles: ['<rootDir>/test/support/quiet.ts'],
  transform: {
    '\\.[cm]?[jt]s$': [
      '@swc/jest',
      {
        jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
        sourceMaps: 'inline',
      },
    ],
    '\\.(?:lua|html)$': '<rootDir>/scripts/jest-lua.cjs',
  },
  transformIgnorePatterns: [`/node_modules/(?!(?:${ESM_ONLY.map(escape).join('|')})/)`, '\\.cjs$'],
  moduleNameMapper: {
    ...Object.fromEntries(
      entries.map(({ specifier, source }) => [`^${escape(specifier)}$`, `<rootDir>/${source}`]),
    ),
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
};

// Its tests measure what a limiter does within milliseconds while a server is away: nothing else runs beside them.
const TIMED = 'test/redis/faults';

const ownProjects = OWN_PROJECTS.filter(name => existsSync(new URL(`test/${name}`, import.meta.url)));

const onRedis = { globalSetup: '<rootDir>/test/support/redis/binaries.ts' };

export default {
  // A crowded machine is slow; what must be quick asserts it itself. (Jest reads it here only, not in a project.)
  testTimeout: 30_000,
  // Most tests wait more than they work: three keep two cores busy.
  maxWorkers: Math.max(3, availableParallelism() - 1),
  projects: [
    {
      ...shared,
      displayName: 'core',
      testMatch: ['<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', ...OWN_PROJECTS.map(name => `<rootDir>/test/${name}/`)],
    },
    ...ownProjects.map(name => ({
      ...shared,
      displayName: name,
      testMatch: [`<rootDir>/test/${name}/**/*.test.ts`],
      testPathIgnorePatterns: ['/node_modules/', `<rootDir>/${TIMED}/`],
      ...(name === 'redis' ? onRedis : {}),
    })),
    // Of the same name, for they are tests of Redis as well.
    {
      ...shared,
      ...onRedis,
      displayName: 'redis',
      runner: '<rootDir>/scripts/jest-alone.cjs',
      testMatch: [`<rootDir>/${TIMED}/**/*.test.ts`],
    },
  ],
};
