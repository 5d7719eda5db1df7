/**
 * A system extension from packages to a running service: built by talosctl from a Debian package, packed into the root file system,
 * run by a node, configured, reconfigured and restarted.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { storyFolder } from '../../support/abandoned-clusters.ts'
import { eventually, succeeded, TestCluster } from '../cluster.ts'

const repository = join(import.meta.dir, '../../..')
const minutes = 60_000
const work = mkdtempSync(storyFolder)
const archive = join(work, 'web.tar')
const root = join(work, 'root.sqsh')
const port = 8099
let cluster: TestCluster
let node = ''

const specification = `name: web
container:
  entrypoint: /bin/busybox
  args: [httpd, -f, -v, -p, "${port}", -h, /srv]
  environment: [FROM=specification, BOTH=specification]
depends:
  - network: [addresses]
  - configuration: true
restart: always
`

const configuration = (content: string) => `apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: web
configFiles:
  - mountPath: /srv/index.html
    content: ${content}
environment: [BOTH=configuration]
`

async function run(...argv: string[]): Promise<string> {
  const child = Bun.spawn(argv, { cwd: work, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(`${argv.join(' ')}: ${err}${out}`)
  return out
}

const talosctl = join(repository, 'dist/talosctl')

beforeAll(async () => {
  await run('apt-get', 'download', 'busybox-static')
  const deb = readdirSync(work).find((name) => name.endsWith('.deb')) ?? ''
  writeFileSync(join(work, 'web.yaml'), specification)
  await run(talosctl, 'extension', 'build', '--name', 'web', '--version', '1.0', '--package', deb, '--service', 'web.yaml', '-o', archive)
  await run(process.execPath, join(import.meta.dir, 'extended-root.ts'), root, archive)
  cluster = new TestCluster('extended')
  await cluster.create('--workers', '0', '--cidr', '10.69.0.0/24', '--image', root)
  node = cluster.nodes()[0]?.ip ?? ''
}, 8 * minutes)

afterAll(async () => {
  await cluster?.destroy()
  cluster?.close()
  rmSync(work, { recursive: true, force: true })
})

const service = async () => succeeded(await cluster.on(node, 'service', 'ext-web')).stdout
const page = async () => await (await fetch(`http://${node}:${port}/`)).text()
const variables = () => {
  const pid = cluster.processIn(cluster.nodes()[0]?.name ?? '', '/bin/busybox httpd')
  return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
}

test('the extension is listed, and is a label of the Node', async () => {
  expect(succeeded(await cluster.on(node, 'get', 'extensions')).stdout).toMatch(/ExtensionStatus\s+0\s+1\s+web\s+1\.0/)
  const { items } = await cluster.objects('get', 'nodes')
  expect(items[0]?.metadata.labels?.['extensions.talos.dev/web']).toBe('1.0')
  expect(succeeded(await cluster.on(node, 'get', 'sbom')).stdout).toContain('busybox-static')
})

test('its service waits for its configuration', async () => {
  expect(await service()).toMatch(/Waiting.*extension service config "web"/)
})

test('a service with its configuration runs, with its files and variables', async () => {
  const file = join(work, 'patch.yaml')
  writeFileSync(file, configuration('first'))
  succeeded(await cluster.on(node, 'patch', 'machineconfig', '--patch', `@${file}`))
  await eventually(async () => expect(await page()).toBe('first'), 60)
  expect(variables()).toContain('FROM=specification')
  expect(variables()).toContain('BOTH=configuration')
  expect(variables()).not.toContain('BOTH=specification')
})

test('another configuration takes effect without a reboot', async () => {
  const file = join(work, 'patch.yaml')
  writeFileSync(file, configuration('second'))
  succeeded(await cluster.on(node, 'patch', 'machineconfig', '--patch', `@${file}`))
  await eventually(async () => expect(await page()).toBe('second'), 60)
})

test('the operator stops and starts it, and reads its log', async () => {
  succeeded(await cluster.on(node, 'service', 'ext-web', 'stop'))
  await expect(page()).rejects.toThrow()
  succeeded(await cluster.on(node, 'service', 'ext-web', 'start'))
  await eventually(async () => expect(await page()).toBe('second'), 60)
  expect(succeeded(await cluster.on(node, 'logs', 'ext-web')).stdout).toContain('response:200')
})

test('a service that is killed runs again', async () => {
  const before = cluster.processIn(cluster.nodes()[0]?.name ?? '', '/bin/busybox httpd')
  process.kill(before ?? 0, 'SIGKILL')
  await eventually(async () => {
    expect(await page()).toBe('second')
    expect(cluster.processIn(cluster.nodes()[0]?.name ?? '', '/bin/busybox httpd')).not.toBe(before)
  }, 60)
})
