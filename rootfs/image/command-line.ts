/** What the kernel is started with: hardening, and where its messages go. */

/** Parameters of every image, in their order. */
const always: readonly string[] = [
  'talos.platform=metal',
  'console=tty0',
  'console=ttyS0',
  'init_on_alloc=1',
  'slab_nomerge=',
  'pti=on',
  'consoleblank=0',
  'nvme_core.io_timeout=4294967295',
  'printk.devkmsg=on',
  'ima_template=ima-ng',
  'ima_appraise=fix',
  'ima_hash=sha512',
  'lockdown=confidentiality',
  'panic=10',
  'gpt',
]

/** A parameter that cannot be on a kernel command line. */
export class CommandLineError extends Error {
  override name = 'CommandLineError'
}

/** The kernel takes no more (COMMAND_LINE_SIZE on x86). */
const limit = 2048

/** The command line, with parameters of the operator's own; `-name` or `-name=value` takes one away. */
export function commandLine(extra: readonly string[], platform = 'metal'): string {
  let parameters = always.map((each) => (each.startsWith('talos.platform=') ? `talos.platform=${platform}` : each))
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
