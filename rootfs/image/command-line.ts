/** What the kernel is started with: hardening, and where its messages go. */
import { extendCommandLine } from '../../src/oci/kernel-command-line.ts'

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

/** The command line, with parameters of the operator's own; `-name` or `-name=value` takes one away. Throws CommandLineError. */
export const commandLine = (extra: readonly string[], platform = 'metal'): string => extendCommandLine(always, extra, platform)
