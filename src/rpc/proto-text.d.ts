/** A .proto file as text, embedded by the bundler. */
declare module '*.proto' {
  const text: string
  export default text
}

/** Any other text, embedded likewise. */
declare module '*.txt' {
  const text: string
  export default text
}
