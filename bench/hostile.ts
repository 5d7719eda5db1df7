/**
 * The effect of malicious clients on others: each recipe of hostile/recipes.ts runs against a cluster, while an
 * administrator queries the version, new connections are made and a worker renews its certificate.
 *
 *   sudo bun bench/hostile.ts [--name bench] [--state FOLDER] [--seconds 60] [--recipe NAME]… [--maintenance]
 *
 * Prints a table, and fails when a bound is not kept. Attackers are separate processes, at a separate address, with a
 * certificate of `os:reader`. With `--maintenance` the cluster's last worker is reset first, and attacked by somebody without
 * a certificate; the worker is left in maintenance.
 */

import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { present } from '../rootfs/build/present.ts'
import { tlsKey } from '../src/pki/key.ts'
import { connect } from '../src/rpc/client/channel.ts'
import { fromMessage } from '../src/rpc/resource-of-message.ts'
import { openCluster } from './cluster.ts'
import { attackerAddress } from './hostile/attacker-address.ts'
import { bounds, type Figures, measure } from './hostile/measure.ts'
import { recipes, type Victim } from './hostile/recipes.ts'
import { rotateLogs } from './hostile/rotation.ts'

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'bench' },
    state: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    recipe: { type: 'string', multiple: true },
    maintenance: { type: 'boolean', default: false },
    attack: { type: 'string' },
  },
})
const seconds = Number(values.seconds)

/** The attacking process: who it is comes on its standard input. */
async function attack(name: string): Promise<void> {
  const victim = JSON.parse(await Bun.stdin.text()) as Victim
  const end = performance.now() + seconds * 1000
  await recipes[name]?.run(victim, () => performance.now() > end)
  process.exit(0)
}

const megabytes = (bytes: number) => `${Math.round(bytes / (1 << 20))} MiB`
const milliseconds = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`

function row(name: string, { version, connection, renewal, memory }: Figures): string[] {
  const [init, apid, trustd] = ['init', 'apid', 'trustd'].map((program) => memory.get(program))
  return [
    name,
    `${milliseconds(version.p50)} / ${milliseconds(version.p99)} / ${milliseconds(version.most)}`,
    `${milliseconds(connection.most)}${connection.failed ? `, ${connection.failed} failed` : ''}`,
    renewal.count > 0 ? `${milliseconds(renewal.most)}${renewal.failed ? `, ${renewal.failed} failed` : ''}` : '',
    init ? `${megabytes(init.before)} → ${megabytes(init.peak)}` : '',
    apid ? `${megabytes(apid.peak)}${apid.restarted ? ', ended' : ''}` : '',
    trustd ? `${megabytes(trustd.peak)}${trustd.restarted ? ', ended' : ''}` : '',
  ]
}

async function main(): Promise<number> {
  const cluster = openCluster(values.name, values.state)
  const [first] = cluster.nodes
  const { ca, cert, key } = cluster.credentials
  if (!first) throw new Error(`cluster "${values.name}" has no nodes`)
  const administrator = { ca, cert, key: tlsKey(key) }
  const admin = connect({ address: `${first.ip}:50000`, tls: administrator })
  const config = await admin.unary('machine.MachineService/GenerateClientConfiguration', {
    roles: ['os:reader'],
    crtTtl: { seconds: 86_400, nanos: 0 },
  })
  const { crt, key: readerKey } = present(config.messages[0], 'client configuration')
  const reader = { cert: Buffer.from(crt).toString(), key: tlsKey(Buffer.from(readerKey).toString()) }
  const root = await admin.unary('cosi.resource.State/Get', { namespace: 'secrets', type: 'OSRootSecrets.secrets.talos.dev', id: 'os' })
  const { token } = fromMessage(present(root.resource, 'OSRootSecrets')).spec as { token: string }
  admin.close()

  const worker = cluster.nodes.filter(({ role }) => role === 'worker').at(-1)
  let node = first
  if (values.maintenance) {
    if (!worker) throw new Error('the cluster has no worker that could be reset')
    node = worker
    await resetTo(node.ip, administrator)
  }
  const names =
    values.recipe ??
    Object.keys(recipes).filter((name) => !values.maintenance || (recipes[name]?.port === 50_000 && !recipes[name].rotates))
  console.log(`load ${loadavg()[0]?.toFixed(1)}, ${seconds} s each, ${values.maintenance ? 'in maintenance, anyone' : 'os:reader'}\n`)
  console.log('| recipe | `version` p50 / p99 / slowest | new connection, slowest | renewal, slowest | PID 1 | apid | trustd |')
  console.log('|---|---|---|---|---|---|---|')
  const broken: string[] = []
  const attacker = attackerAddress(node.ip)
  for (const name of ['nothing', ...names]) {
    const rotation = recipes[name]?.rotates ? rotateLogs(node.disk) : undefined
    const { promise: ended, child } = begin(
      name,
      { host: node.ip, ...(!values.maintenance && reader), ...(rotation && { container: rotation.container }) },
      attacker.command,
    )
    const figures = await measure({
      node,
      tls: values.maintenance ? { insecure: true } : administrator,
      ...(!values.maintenance && { renewal: { address: `${node.ip}:50001`, token, ca, from: worker?.processes().get('init') } }),
      milliseconds: seconds * 1000,
    })
    child?.kill()
    await ended
    rotation?.stop()
    console.log(`| ${row(name, figures).join(' | ')} |`)
    for (const bound of bounds(figures)) broken.push(`${name}: ${bound}`)
  }
  attacker.remove()
  console.log(`\nload ${loadavg()[0]?.toFixed(1)}`)
  for (const line of broken) console.log(`not kept: ${line}`)
  return broken.length > 0 ? 1 : 0
}

function begin(name: string, victim: Victim, inNamespace: readonly string[]) {
  if (!recipes[name]) return { promise: Promise.resolve(0), child: undefined }
  const command = [process.execPath, import.meta.path, '--attack', name, '--seconds', String(seconds)]
  const child = Bun.spawn([...inNamespace, ...command], {
    stdin: new Blob([JSON.stringify(victim)]),
    stdout: 'inherit',
    stderr: 'inherit',
  })
  return { promise: child.exited, child }
}

/** Resets a node's configuration, and waits until it is in maintenance. */
async function resetTo(ip: string, tls: { ca: string; cert: string; key: string }): Promise<void> {
  const channel = connect({ address: `${ip}:50000`, tls })
  await channel.unary('machine.MachineService/Reset', {
    graceful: false,
    reboot: true,
    systemPartitionsToWipe: [{ label: 'STATE', wipe: true }],
  })
  channel.close()
  for (let tries = 0; ; tries++) {
    const client = connect({ address: `${ip}:50000`, tls: { insecure: true } }, { connectTimeout: 1000 })
    try {
      await client.unary('machine.MachineService/Version', {}, { deadline: 2000 })
      return
    } catch (error) {
      if (tries > 120) throw error
    } finally {
      client.close()
    }
    await Bun.sleep(500)
  }
}

if (values.attack) await attack(values.attack)
else process.exitCode = await main()
