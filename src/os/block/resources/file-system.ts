import * as v from 'valibot'

/** File systems that resources have names for. */
const names = ['none', 'xfs', 'vfat', 'ext4', 'iso9660', 'swapi', 'virtiofs'] as const

/** Of a resource. */
export const fileSystem = v.picklist(names)

/** What a file system is called in resources: whatever else there is, an overlay say, is none of those with a name. */
export const fileSystemName = (name: string): (typeof names)[number] => names.find((each) => each === name) ?? 'none'
