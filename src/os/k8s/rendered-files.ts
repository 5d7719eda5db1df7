import type { Kernel } from '../kernel.ts'

/** A file to be on disk for a component, readable by nobody else. */
export interface RenderedFile {
  name: string
  content: string
  mode?: number
}

/** What writing needs of the kernel. */
export type FileWriter = Pick<Kernel['files'], 'mkdirAll' | 'writeAtomic' | 'readTextIfThere'>

/** Makes a folder hold these files, owned by one user; files that are right already are left alone. */
export async function renderFiles(files: FileWriter, folder: string, uid: number, rendered: readonly RenderedFile[]): Promise<void> {
  files.mkdirAll(folder, { mode: 0o700, uid, gid: uid })
  for (const { name, content, mode = 0o400 } of rendered) {
    const path = `${folder}/${name}`
    if (files.readTextIfThere(path) !== content) await files.writeAtomic(path, content, { mode, uid, gid: uid })
  }
}

/** PEM of a value that a spec holds as base64. */
export const pemOf = (base64: string | undefined): string => Buffer.from(base64 ?? '', 'base64').toString()
