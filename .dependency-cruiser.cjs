// The rooms and who may import whom. One way:
//   express, admin, service, outbound, telemetry, cli → core → algorithms
//   admin, service → http → core
//   stores → core, algorithms
// Types count as imports, so a cycle of types alone is a cycle too.

const room = names => `^src/(?:${names.join('|')})/`;
const ROUTERS = ['admin', 'service'];
const ADAPTERS = ['express', 'outbound', 'telemetry', 'cli'];
const WITH_PACKAGES = ['admin', 'service', 'config', 'cli'];
const PACKAGE = ['npm', 'npm-dev', 'npm-optional', 'npm-peer', 'npm-bundled', 'npm-no-pkg', 'npm-unknown'];

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'algorithms-stand-alone',
      comment: 'The algorithms are pure functions over tuples: they import nothing but each other.',
      severity: 'error',
      from: { path: '^src/algorithms/' },
      to: { pathNot: '^src/algorithms/' },
    },
    {
      name: 'core-knows-no-io',
      comment:
        'The core imports itself, the algorithms and, through builtin.ts, node:async_hooks (contexts), node:crypto and node:net (its isIP only); no store, no Express, no package.',
      severity: 'error',
      from: { path: '^src/core/' },
      to: { pathNot: ['^src/(?:core|algorithms)/', '^(?:node:)?(?:async_hooks|crypto|module|net)$'] },
    },
    {
      name: 'stores-know-core-only',
      severity: 'error',
      from: { path: '^src/stores/' },
      to: { path: '^src/', pathNot: '^src/(?:stores|core|algorithms)/' },
    },
    {
      name: 'adapters-know-core-only',
      comment: 'An adapter imports its own room, the core and the algorithms; a store is handed to it.',
      severity: 'error',
      from: { path: `^src/(${ADAPTERS.join('|')})/` },
      to: { path: '^src/', pathNot: '^src/(?:$1|core|algorithms)/' },
    },
    {
      name: 'routers-know-core-and-http',
      comment: 'The routers share how HTTP is spoken; stores are handed to them, by their index.ts.',
      severity: 'error',
      from: { path: `^src/(${ROUTERS.join('|')})/`, pathNot: '^src/[^/]+/index\\.ts$' },
      to: { path: '^src/', pathNot: '^src/(?:$1|http|core|algorithms)/' },
    },
    {
      name: 'router-faces-hand-stores-in',
      comment: 'The entry of a router does what src/index.ts does for the middleware.',
      severity: 'error',
      from: { path: `^src/(${ROUTERS.join('|')})/index\\.ts$` },
      to: { path: '^src/', pathNot: '^src/(?:$1|core|stores/memory)/' },
    },
    {
      name: 'http-knows-core-only',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/', pathNot: '^src/(?:http|core|algorithms)/' },
    },
    {
      name: 'page-stands-alone',
      comment: 'The page runs in a browser: it imports nothing but itself.',
      severity: 'error',
      from: { path: '^src/admin/page/client/' },
      to: { pathNot: '^src/admin/page/client/' },
    },
    {
      name: 'nobody-imports-the-face',
      severity: 'error',
      from: { path: room(['algorithms', 'core', 'stores', 'http', ...ROUTERS, ...ADAPTERS]) },
      to: { path: '^src/(?:index\\.ts$|presets/|testing/)' },
    },
    {
      name: 'no-packages-at-run-time',
      comment: 'Requiring limitkeeper loads node: modules only; types of Express are fine, they vanish.',
      severity: 'error',
      from: { path: '^src/', pathNot: room(WITH_PACKAGES) },
      to: { dependencyTypes: PACKAGE, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'src-stays-in-src',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(?:test|bench|examples|scripts|dist)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'require', 'node', 'default'],
      extensions: ['.ts', '.d.ts', '.js', '.cjs', '.json', '.lua'],
    },
  },
};
