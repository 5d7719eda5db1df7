import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { release } from '../../../../release.ts'
import { buildExtension } from '../../extension/build.ts'
import { openImage } from '../../extension/image-source.ts'
import { type Extension, unpackExtension } from '../../extension/unpack.ts'
import { UsageError } from '../../failure.ts'
import { array } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured } from '../../output/output.ts'
import type { Schema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { humanSize } from '../../output/units.ts'

interface ReadFlags {
  arch: string
  insecure?: boolean
}

interface BuildFlags {
  name?: string
  version?: string
  author?: string
  description?: string
  compatibleWith?: string
  package: string[]
  service?: string
  arch: string
  output: string
}

const archOption = () => new Option('--arch <arch>', 'the architecture').choices(['amd64', 'arm64']).default('amd64')
const insecureFlag = ['--insecure', 'the registry may use HTTP, or a certificate that nobody knows'] as const

/** talosctl extension */
export const extension = (io: Io) =>
  new Command()
    .description('Build and check system extensions, which ./mkimage.sh adds to the image of the system.')
    .addCommand(build(io))
    .addCommand(inspect(io))
    .addCommand(validate(io))

const buildExamples = `
Examples:
  talosctl extension build agent --output agent.tar
  talosctl extension build --name agent --version 7.2 --package qemu-guest-agent.deb --service agent.yaml --output agent.tar
`

const build = (io: Io) =>
  new Command('build')
    .description('Build an extension from a folder with "manifest.yaml" and "rootfs", and from Debian packages for its service.')
    .argument('[folder]', 'with "manifest.yaml", "rootfs", or both')
    .requiredOption('-o, --output <file>', 'the OCI image archive that is written')
    .option('--name <name>', 'its name, where there is no "manifest.yaml"')
    .option('--version <version>', 'its version')
    .option('--author <author>', 'who makes it')
    .option('--description <text>', 'what it is for')
    .option('--compatible-with <range>', 'the releases it is made for, as in ">= 1.13.0 < 1.14.0" (default: all)')
    .addOption(
      new Option('--package <file>', 'a Debian package, part of the root of its service; may be repeated').argParser(array()).default([]),
    )
    .option('--service <file>', 'the specification of its service')
    .addOption(archOption())
    .addHelpText('after', buildExamples)
    .action((folder: string | undefined, flags: BuildFlags) => runBuild(io, folder, flags))

const extensionSchema: Schema = {
  name: 'string',
  version: 'string',
  author: 'string',
  description: 'string',
  compatibility: { talos: { version: 'string' } },
  files: [{ path: 'string', size: 'number', target: 'string' }],
}

const inspect = (io: Io) =>
  new Command('inspect')
    .description('Show what an extension states about itself, and its files.')
    .argument('<image>', 'an OCI archive, a folder in the OCI layout, or a reference')
    .addOption(archOption())
    .option(...insecureFlag)
    .addOption(outputOption(extensionSchema))
    .action((image: string, flags: ReadFlags & OutputFlags) => runInspect(io, image, flags))

const validate = (io: Io) =>
  new Command('validate')
    .description('Check extensions against the rules of this release: a line for each fault.')
    .argument('<images...>', 'OCI archives, folders in the OCI layout, or references')
    .addOption(archOption())
    .option(...insecureFlag)
    .action((images: string[], flags: ReadFlags) => runValidate(io, images, flags))

async function runBuild(io: Io, folder: string | undefined, flags: BuildFlags): Promise<void> {
  const { name, version, author, description, compatibleWith, service, arch, output } = flags
  const metadata = Object.fromEntries(
    Object.entries({ name, version, author, description, release: compatibleWith }).filter(([, value]) => value !== undefined),
  )
  if (folder === undefined && flags.package.length === 0)
    throw new UsageError('there is nothing to build from: name a folder, or packages with --package')
  const built = await buildExtension({ folder, metadata, packages: flags.package, service, arch, output })
  io.stdout.write(`"${output}": extension ${built.name} ${built.version} for ${arch}\n`)
}

async function runInspect(io: Io, image: string, flags: ReadFlags & OutputFlags): Promise<void> {
  await withExtension(io, image, flags, undefined, ({ metadata, entries }) => {
    const files = entries.filter(({ type }) => type !== 'dir')
    const bytes = files.reduce((sum, { size }) => sum + size, 0)
    const described = { ...metadata, files: files.map(({ path, size, target }) => ({ path, size, ...(target && { target }) })) }
    if (structured(io, flags.output, [described])) return
    io.stdout.write(
      table([
        ['NAME', metadata.name],
        ['VERSION', metadata.version],
        ['AUTHOR', metadata.author],
        ['DESCRIPTION', metadata.description],
        ['COMPATIBLE WITH', metadata.compatibility.talos.version || 'all releases'],
        ['FILES', `${files.length}, ${humanSize(bytes)}`],
      ]),
    )
    const rows = files.map(({ path, size, target }) => [humanSize(size), target ? `${path} -> ${target}` : path])
    io.stdout.write(`\n${table([['SIZE', 'PATH'], ...rows])}`)
  })
}

async function runValidate(io: Io, images: readonly string[], flags: ReadFlags): Promise<void> {
  for (const image of images)
    await withExtension(io, image, flags, release.tag, ({ metadata, entries }) =>
      io.stdout.write(`"${image}": extension ${metadata.name} ${metadata.version} is valid, ${entries.length} entries\n`),
    )
}

async function withExtension(
  io: Io,
  image: string,
  { arch, insecure }: ReadFlags,
  forRelease: string | undefined,
  use: (extension: Extension) => void,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'ichor-extension-'))
  try {
    use(await unpackExtension(await openImage(image, { io, insecure }), { folder, arch, release: forRelease }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
