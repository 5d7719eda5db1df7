/** The script of the page as text: the bundler embeds it. */
declare const text: string
export default text
