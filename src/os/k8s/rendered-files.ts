import type { Kernel } from '../kernel.ts'

/** A file of a component, readable by no other user. */
export interface RenderedFile {
  name: string
  content: string
  mode?: number
}

/** The kernel calls that writing takes. */
export type FileWriter = Pick<Kernel['files'], 'mkdirAll' | 'writeAtomic' | 'readTextIfThere'>

/** Makes a folder hold exactly these files, owned by one user; files that are up to date are left alone. */
export async function renderFiles(files: FileWriter, folder: string, uid: number, rendered: readonly RenderedFile[]): Promise<void> {
  files.mkdirAll(folder, { mode: 0o700, uid, gid: uid })
  for (const { name, content, mode = 0o400 } of rendered) {
    const path = `${folder}/${name}`
    if (files.readTextIfThere(path) !== content) await files.writeAtomic(path, content, { mode, uid, gid: uid })
  }
}

/** PEM of a value that a spec holds as base64. */
export const pemOf = (base64: string | undefined): string => Buffer.from(base64 ?? '', 'base64').toString()
