import { Command, InvalidArgumentError } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'

/** Keys as people write them: decimal or hexadecimal, one byte. */
function key(text: string): number {
  const value = Number(text)
  if (!/^(0x[0-9a-f]+|\d+)$/i.test(text) || value > 255) throw new InvalidArgumentError('want a number from 0 to 255, such as 10 or 0x0a')
  return value
}

/** talosctl meta */
export const meta = (_: Io, cluster: Cluster) => {
  const command = new Command().description('Write and delete keys of the META partition.')
  const insecure = () => command.opts<{ insecure?: boolean }>().insecure === true
  command.option('-i, --insecure', 'the node has no configuration yet: connect without a client certificate')
  command
    .command('write')
    .description('Write a key. Example: talosctl meta write 0x0a "$(cat platform-network.yaml)" -n 10.5.0.2')
    .argument('<key>', 'its number', key)
    .argument('<value>', 'what it shall hold')
    .action((number: number, value: string) =>
      change(cluster, insecure(), `writing META key ${number}`, (target) =>
        target.ask('machine.MachineService/MetaWrite', { key: number, value: Buffer.from(value) }),
      ),
    )
  command
    .command('delete')
    .description('Delete a key. Example: talosctl meta delete 0x0a -n 10.5.0.2')
    .argument('<key>', 'its number', key)
    .action((number: number) =>
      change(cluster, insecure(), `deleting META key ${number}`, (target) =>
        target.ask('machine.MachineService/MetaDelete', { key: number }),
      ),
    )
  return command
}

async function change(cluster: Cluster, insecure: boolean, action: string, act: (target: Cluster) => Promise<unknown>): Promise<void> {
  const target = insecure ? await cluster.insecure() : cluster
  if (!insecure) await cluster.named(action)
  try {
    await act(target)
  } finally {
    if (target !== cluster) await target.close()
  }
}
