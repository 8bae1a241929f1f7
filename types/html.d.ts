// The operators' page is imported as its text, with its style and script in it; see scripts/page.cjs.
declare module '*.html' {
  const text: string;
  export default text;
}
