/** The pages of the site: which files of the repository they are, and in which order. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Root of the repository. */
export const repository: string = join(import.meta.dirname, '../..')

/** A part of the sidebar. */
export interface Group {
  readonly title: string
  /** Paths in the repository, in the order of reading. */
  readonly files: readonly string[]
}

/** The whole sidebar. Every page below docs/ is in it, which a test sees to. */
export const groups: readonly Group[] = [
  { title: 'Start', files: ['README.md', 'docs/clusters.md'] },
  {
    title: 'Operate',
    files: [
      'docs/operating.md',
      'docs/logging.md',
      'docs/metrics.md',
      'docs/changing-configuration.md',
      'docs/upgrades.md',
      'docs/backup.md',
      'docs/kubernetes-upgrades.md',
      'docs/rotation.md',
      'docs/network.md',
      'docs/platforms.md',
      'docs/mesh.md',
      'docs/management.md',
      'docs/cluster-api.md',
      'docs/disks.md',
    ],
  },
  {
    title: 'Reference',
    files: ['docs/reference/configuration.md', 'docs/reference/commands.md', 'docs/reference/resources.md', 'docs/reference/api.md'],
  },
  {
    title: 'Internals',
    files: [
      'docs/architecture.md',
      'docs/contributing.md',
      'docs/boot.md',
      'docs/images.md',
      'docs/kernel.md',
      'docs/extensions.md',
      'rootfs/README.md',
      'bench/README.md',
    ],
  },
]

/** Every file that is a page. */
export const pages: readonly string[] = groups.flatMap(({ files }) => files)

/** The address of a page below the root of the site, without ending: docs/ is its root, a README is called after its folder. */
export function addressOf(file: string): string {
  if (file === 'README.md') return 'overview'
  return file.replace(/^docs\//, '').replace(/(\/README)?\.md$/, '')
}

/** The title of a page: its first heading, up to a colon. */
export function titleOf(file: string): string {
  const title = /^# (.+)$/m.exec(readFileSync(join(repository, file), 'utf8'))?.[1]
  if (!title) throw new Error(`${file} has no title: expected a first line "# …"`)
  return file === 'README.md' ? 'Overview' : title.replace(/:.*/, '').replaceAll('`', '')
}
