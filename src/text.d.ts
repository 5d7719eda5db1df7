/** A text file next to the code, embedded by the bundler. */
declare module '*.txt' {
  const text: string
  export default text
}
declare module '*.css' {
  const text: string
  export default text
}
