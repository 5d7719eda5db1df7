/** A network namespace on the cluster's bridge. It gives attackers a separate address, because limits apply per address. */
import { execFileSync } from 'node:child_process'

const name = 'ichor-attacker'
const [outer, inner] = ['ichattack0', 'ichattack1']

/** Creates the namespace with the address .253 of the node's /24 network. */
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
        // It does not exist.
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
