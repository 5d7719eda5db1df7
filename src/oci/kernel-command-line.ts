/** How the parameters that an image starts its kernel with are changed. */

/** A parameter that cannot be on a kernel command line. */
export class CommandLineError extends Error {
  override name = 'CommandLineError'
}

/** The kernel takes no more (COMMAND_LINE_SIZE on x86). */
const limit = 2048

/** Parameters of which those of the operator replace those of the image. */
const replaced = ['console', 'talos.platform']

/**
 * The line of these parameters with others behind them; `-name` or `-name=value` takes one away, and `console` and `talos.platform`
 * take the place of those that the image has. Throws CommandLineError.
 */
export function extendCommandLine(base: readonly string[], extra: readonly string[], platform: string): string {
  let parameters = base.map((each) => (each.startsWith('talos.platform=') ? `talos.platform=${platform}` : each))
  const over = replaced.filter((name) => extra.some((each) => each.startsWith(`${name}=`)))
  parameters = parameters.filter((each) => !over.includes(each.split('=')[0] ?? ''))
  for (const each of extra) {
    if (!/^[\x21-\x7e]+$/.test(each))
      throw new CommandLineError(`kernel parameter ${JSON.stringify(each)}: must be one word of plain characters`)
    if (!each.startsWith('-')) parameters.push(each)
    else parameters = parameters.filter((one) => one !== each.slice(1) && !one.startsWith(`${each.slice(1)}=`))
  }
  const line = parameters.join(' ')
  if (line.length >= limit)
    throw new CommandLineError(`the kernel command line has ${line.length} characters, the kernel takes ${limit - 1}`)
  return line
}

/** A command line as words of a GRUB configuration, which gives other characters a meaning of its own. */
export const grubWords = (line: string): string => line.split(/\s+/).filter(Boolean).map(quoted).join(' ')

function quoted(word: string): string {
  return /^[\w.,:=/@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
