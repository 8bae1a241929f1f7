// A .lua file is imported as its text; see tsup.config.ts and jest.config.js.
declare module '*.lua' {
  const text: string;
  export default text;
}
