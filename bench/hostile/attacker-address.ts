/** A network namespace on the cluster's bridge: attackers have an address of their own, as limits are those of an address. */
import { execFileSync } from 'node:child_process'

const name = 'ichor-attacker'
const [outer, inner] = ['ichattack0', 'ichattack1']

/** Makes the namespace, with the last address but one of the node's network; `remove` takes it away. */
export function attackerAddress(node: string): { readonly command: readonly string[]; remove(): void } {
  const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8' })
  const remove = () => {
    for (const args of [
      ['link', 'del', outer],
      ['netns', 'del', name],
    ])
      try {
        execFileSync('ip', args, { stdio: 'ignore' })
      } catch {
        // It is not there.
      }
  }
  remove()
  const [{ dev: bridge }] = JSON.parse(ip('-json', 'route', 'get', node)) as [{ dev: string }]
  ip('netns', 'add', name)
  ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', name)
  ip('link', 'set', outer, 'master', bridge, 'up')
  ip('-n', name, 'address', 'add', `${node.replace(/\d+$/, '253')}/24`, 'dev', inner)
  ip('-n', name, 'link', 'set', inner, 'up')
  return { command: ['ip', 'netns', 'exec', name], remove }
}
