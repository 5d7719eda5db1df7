/** How the parameters that an image starts its kernel with are changed. */

/** A parameter that cannot be on a kernel command line. */
export class CommandLineError extends Error {
  override name = 'CommandLineError'
}

/** The kernel takes no more (COMMAND_LINE_SIZE on x86). */
const limit = 2048

/** The line of these parameters with others behind them; `-name` or `-name=value` takes one away. Throws CommandLineError. */
export function extendCommandLine(base: readonly string[], extra: readonly string[], platform: string): string {
  let parameters = base.map((each) => (each.startsWith('talos.platform=') ? `talos.platform=${platform}` : each))
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
