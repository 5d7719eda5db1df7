/** What the kernel is started with: hardening, and where its messages go. */
import { extendCommandLine } from '../../src/oci/kernel-command-line.ts'
import { type Target, targets } from '../build/target.ts'

/** Parameters of every image, in their order. */
const always = ({ consoles }: Target): readonly string[] => [
  'talos.platform=metal',
  ...consoles,
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
export const commandLine = (extra: readonly string[], platform = 'metal', target: Target = targets.amd64): string =>
  extendCommandLine(always(target), extra, platform)
