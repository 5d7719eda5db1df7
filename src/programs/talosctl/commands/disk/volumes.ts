import { Command } from 'commander'
import { DecodeError } from '../../../../wire/decode-error.ts'
import { parseRecoveryKey } from '../../../../wire/luks2/recovery-key.ts'
import type { Cluster } from '../../cluster.ts'
import { escrowedKeys } from '../../disk/escrow.ts'
import { UsageError } from '../../failure.ts'
import { readIdentities } from '../../identities.ts'
import type { Io } from '../../io.ts'
import { qrText } from '../../output/qr.ts'
import { readText } from '../../read-text.ts'

interface KeyOptions {
  recipient: readonly string[]
  qr: boolean
  identity?: string
  insecure?: boolean
}

interface UnlockOptions {
  recoveryKey?: boolean
  recoveryKeyFile?: string
  insecure?: boolean
}

/** talosctl volumes */
export const volumes = (io: Io, cluster: Cluster) => {
  const command = new Command().description('Make and use recovery keys of encrypted volumes.')
  command
    .command('recovery-key')
    .description(
      'Make a recovery key of a node, in place of the one before, and show it once. Example: talosctl volumes recovery-key -n 10.5.0.2',
    )
    .option(
      '--recipient <age1…>',
      'public key of age that the key is encrypted to; "talosctl get volumerecovery" shows the result; may be repeated',
      (value: string, before: readonly string[]) => [...before, value],
      [],
    )
    .option('--no-qr', 'show the text only')
    .option(
      '--identity <file>',
      'make none: show the key of the node that was encrypted to recipients, with an identity of age in this file',
    )
    .option('-i, --insecure', 'with --identity, while STATE is locked: connect without a client certificate')
    .action((options: KeyOptions) => runRecoveryKey(io, cluster, options))
  command
    .command('unlock')
    .description(
      'Open the volumes of a node that no other key opens. Example: talosctl volumes unlock --recovery-key -n 10.5.0.2 --insecure',
    )
    .option('--recovery-key', 'read the key from standard input, or ask for it')
    .option('--recovery-key-file <file>', 'read the key from a file')
    .option('-i, --insecure', 'STATE is locked, so the node knows no administrators: connect without a client certificate')
    .action((options: UnlockOptions) => runUnlock(io, cluster, options))
  return command
}

/** Makes a recovery key and prints it: the node does not show it again. With an identity, prints what the node has for it. */
export async function runRecoveryKey(io: Io, cluster: Cluster, { recipient, qr, identity, insecure }: KeyOptions): Promise<void> {
  if (identity !== undefined) {
    if (recipient.length > 0) throw new UsageError('use --recipient to make a key, or --identity to show the one that there is')
    return showEscrowed(io, cluster, { identity, insecure, qr })
  }
  if (insecure) throw new UsageError('--insecure is for --identity: only an administrator makes a key')
  await cluster.single('volumes recovery-key')
  const [reply] = await cluster.ask('ichor.v1.VolumeService/NewRecoveryKey', { recipients: recipient })
  if (!reply) throw new Error('the node answered without a key')
  for (const failure of reply.failed) io.stderr.write(`it does not open ${failure}\n`)
  io.stderr.write(`The recovery key of ${reply.volumes.join(', ')}. It is not shown again, and the one before is void.\n`)
  io.stdout.write(`${reply.key}\n`)
  if (qr) io.stdout.write(`\n${qrText(reply.key, io.stdout.colors)}`)
}

/** Prints the keys of a node that an identity reads; one, except where volumes have different ones. */
async function showEscrowed(
  io: Io,
  cluster: Cluster,
  { identity, insecure, qr }: { identity: string; insecure?: boolean | undefined; qr: boolean },
): Promise<void> {
  const identities = await readIdentities(identity)
  const target = insecure ? await cluster.insecure() : cluster
  try {
    await target.single('volumes recovery-key')
    const found = await escrowedKeys(target, identities)
    for (const [key, volumes] of found) {
      io.stderr.write(`The recovery key of ${volumes.join(', ')}.\n`)
      io.stdout.write(`${key}\n`)
      if (qr) io.stdout.write(`\n${qrText(key, io.stdout.colors)}`)
    }
  } finally {
    if (target !== cluster) await target.close()
  }
}

/** Reads a recovery key, which is never an argument, and opens what it opens. */
export async function runUnlock(io: Io, cluster: Cluster, options: UnlockOptions): Promise<void> {
  const key = await readKey(io, options)
  const target = options.insecure ? await cluster.insecure() : cluster
  try {
    await target.single('volumes unlock')
    for (const { volumes: opened } of await target.ask('ichor.v1.VolumeService/Unlock', { recoveryKey: key }))
      io.stdout.write(`unlocked ${opened.join(', ')}\n`)
  } finally {
    if (target !== cluster) await target.close()
  }
}

async function readKey(io: Io, { recoveryKey, recoveryKeyFile }: UnlockOptions): Promise<string> {
  if (Boolean(recoveryKey) === (recoveryKeyFile !== undefined))
    throw new UsageError('use --recovery-key, which reads the key from standard input, or --recovery-key-file')
  const typed = async () => (io.interactive ? io.askSecret('Recovery key (not shown): ') : Buffer.from(await io.readStdin()).toString())
  const text = recoveryKeyFile === undefined ? await typed() : await readText(recoveryKeyFile, 'recovery key')
  try {
    return parseRecoveryKey(text)
  } catch (error) {
    if (error instanceof DecodeError) throw new UsageError(`the recovery key is mistyped: ${error.message}`)
    throw error
  }
}
