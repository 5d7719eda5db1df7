/**
 * Where a machine of its own gets its configuration from: the kernel's command line before and after everybody else, a
 * server whose address contains what identifies this machine, a disk with a label. Every part is put in force and
 * completed by the next; what is wrong is one line on the console.
 */
import { afterAll, afterEach, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { dist, forgetState, stateFolder, TestMachine } from './machine.ts'

const folder = stateFolder('sources')
const image = process.env.ICHOR_VM_IMAGE ?? dist
const minutes = 60_000
const uuid = '4c4c4544-0042-3510-8051-b7c04f4e3232'
let machine: TestMachine | undefined

afterEach(async () => {
  await machine?.unplug()
  machine = undefined
})
afterAll(() => forgetState(folder))

/** A part of a configuration: enough to see that it is in force, too little to start with. */
const part = (hostname: string) => `apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: ${hostname}\n`
const servers = (name: string) => `apiVersion: v1alpha1\nkind: ResolverConfig\nnameservers:\n  - address: ${name}\n`
const inline = (text: string) => zstdCompressSync(Buffer.from(text)).toString('base64')

async function start(name: string, append: string, more: object = {}): Promise<TestMachine> {
  machine = await TestMachine.start({ image, console: join(folder, `${name}.log`), append, outside: true, ...more })
  console.log(`console: ${join(folder, `${name}.log`)}`)
  return machine
}

/** As it is written in an address. */
const rack = '$' + '{rack}'

/** The output of a command against a machine in maintenance. */
async function output(one: TestMachine, ...args: string[]): Promise<string> {
  return one.until(
    args.join(' '),
    async () => {
      const { code, stdout, stderr } = await one.insecurely(...args)
      if (code !== 0) throw new Error(stderr.trim())
      return stdout
    },
    10 * minutes,
  )
}

test(
  'the command line begins, a server that answers the second request continues, the command line has the last word',
  async () => {
    const requests: URL[] = []
    using server = Bun.serve({
      port: 0,
      fetch(request) {
        requests.push(new URL(request.url))
        return requests.length === 1 ? new Response('not yet', { status: 503 }) : new Response(part('from-server'))
      },
    })
    const address = `http://10.0.2.2:${server.port}/config?uuid=\${uuid}&serial=\${SERIAL}&mac=\${mac}&older&uuid=`
    const line = `talos.config.early=${inline(servers('192.0.2.53'))} talos.config=${address} talos.config.inline=${inline(part('from-inline'))}`
    const one = await start('download', line, { smbios: [`type=1,uuid=${uuid},serial=rack-7`] })
    await one.shows(/machine configuration found.*source=cmdline-early whole=false/, 15 * minutes)
    await one.shows(/could not be read.*source=metal.*answered 503/, 15 * minutes)
    await one.shows(/machine configuration found.*source=metal whole=false/, 15 * minutes)
    await one.shows(/machine configuration found.*source=cmdline-late whole=false/, 15 * minutes)
    await one.shows(/maintenance: waiting for a machine configuration/, 15 * minutes)
    const query = requests[1]!.searchParams
    expect(query.getAll('uuid')).toEqual([uuid, uuid])
    expect(query.get('serial')).toBe('rack-7')
    expect(query.get('mac')).toMatch(/^52:54:00:/)
    await one.until('the name', async () => (await output(one, 'get', 'hostname')).includes('from-inline'), 10 * minutes)
    expect(await output(one, 'get', 'resolvers')).toContain('192.0.2.53')
    expect(await output(one, 'get', 'systeminformation', '-o', 'yaml')).toContain(uuid)
  },
  60 * minutes,
)

test(
  'a disk with the label metal-iso holds one',
  async () => {
    const content = join(folder, 'disk')
    const iso = join(folder, 'config.iso')
    mkdirSync(content, { recursive: true })
    writeFileSync(join(content, 'config.yaml'), part('from-disk'))
    const made = Bun.spawnSync(['xorriso', '-as', 'mkisofs', '-quiet', '-V', 'metal-iso', '-r', '-J', '-o', iso, content])
    expect(made.stderr.toString()).not.toContain('FAILURE')
    const one = await start('disk', 'talos.config=metal-iso', { cdrom: iso })
    await one.shows(/reading machine configuration from a disk.*device=\/dev\/sr0/, 15 * minutes)
    await one.shows(/machine configuration found.*source=metal whole=false/, 10 * minutes)
    await one.until('the name', async () => (await output(one, 'get', 'hostname')).includes('from-disk'), 10 * minutes)
  },
  60 * minutes,
)

test(
  'the provisioning medium of Azure holds one as custom data',
  async () => {
    const content = join(folder, 'azure')
    const iso = join(folder, 'azure.iso')
    mkdirSync(content, { recursive: true })
    const data = Buffer.from(part('from-azure')).toString('base64')
    const set = `<LinuxProvisioningConfigurationSet><CustomData>${data}</CustomData></LinuxProvisioningConfigurationSet>`
    writeFileSync(join(content, 'ovf-env.xml'), `<Environment><ProvisioningSection>${set}</ProvisioningSection></Environment>`)
    // Its file system is UDF, which the machine mounts although the medium has ISO 9660 as well.
    const made = Bun.spawnSync(['genisoimage', '-quiet', '-udf', '-V', 'rd_rdfe', '-o', iso, content])
    expect([made.exitCode, made.stderr.toString()]).toEqual([0, ''])
    const one = await start('azure', 'talos.platform=azure', { cdrom: iso })
    await one.shows(/machine configuration found.*source=azure whole=false/, 20 * minutes)
    await one.until('the name', async () => (await output(one, 'get', 'hostname')).includes('from-azure'), 10 * minutes)
  },
  60 * minutes,
)

test(
  'an address with an unknown variable is reported in one line, on the console and in events',
  async () => {
    const one = await start('unknown', `talos.config=http://10.0.2.2/${rack}`)
    const what = `unknown variable "${rack}"`
    const line = await one.shows(/.*could not be read.*source=metal.*/, 15 * minutes)
    expect(line[0].replaceAll('\\"', '"')).toContain(`${what} in "http://10.0.2.2/${rack}", known are uuid, serial, mac, hostname, code`)
    await one.shows(/maintenance: waiting for a machine configuration/, 15 * minutes)
    // This machine reaches no time server: it starts anyway, and reports why its clock may be wrong.
    const why = await one.until(
      'the time server that does not answer',
      async () => /time server "?time\.cloudflare\.com.*/.exec(await output(one, 'explain', 'timestatus/node'))?.[0],
      15 * minutes,
    )
    expect(why).toMatch(/no answer|not end in time|does not|cannot|refused|unreachable/)
  },
  60 * minutes,
)
