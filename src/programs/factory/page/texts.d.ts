/** Files of the page, embedded by the bundler. */
declare module '*.css' {
  const text: string
  export default text
}
