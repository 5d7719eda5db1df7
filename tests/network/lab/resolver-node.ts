/** The node's resolver alone, for a namespace of its own: where it listens, and after `--` its upstream servers. Prints each change of health. */
import { Resolver } from '../../../src/os/network/dns/resolver.ts'

const at = process.argv.indexOf('--')
const servers = process.argv.slice(at + 1)
// Servers may take their time on a busy machine; one that is not there is known at once.
const resolver = new Resolver(undefined, { attempt: 15_000, whole: 18_000, probe: 2000 })
const report = () => console.log(`well: ${servers.filter((server) => resolver.healthy(server)).join(' ')}`)
resolver.onHealth(report)
resolver.use(servers)
await resolver.listen(process.argv.slice(2, at))
report()
