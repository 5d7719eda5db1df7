/** Where the files that a configuration gives to services of extensions are on the node. */

/** Folder of all of them, on a tmpfs. */
export const configuredFolder = '/system/overlays/extensions'

/**
 * The file for a path in a service. Slashes, also the first one, become `%`-escapes rather than `-` as in Talos, where the files of `/a/b` and `/a-b`
 * would be one.
 */
export const configuredFile = (name: string, mountPath: string): string => `${configuredFolder}/${name}/${encodeURIComponent(mountPath)}`
