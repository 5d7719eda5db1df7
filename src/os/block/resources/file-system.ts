import * as v from 'valibot'

/** File systems that resources can name. */
const names = ['none', 'xfs', 'vfat', 'ext4', 'iso9660', 'swapi', 'virtiofs'] as const

/** The schema of a file system in a resource. */
export const fileSystem = v.picklist(names)

/** The name of a file system in resources; `none` for file systems without one, such as overlayfs. */
export const fileSystemName = (name: string): (typeof names)[number] => names.find((each) => each === name) ?? 'none'
