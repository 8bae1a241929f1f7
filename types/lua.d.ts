// A .lua file is imported as its text; see rollup.config.js and jest.config.js.
declare module '*.lua' {
  const text: string;
  export default text;
}
