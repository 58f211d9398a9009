/* Logs what a process writes below POWER_ROOT, in order, into POWER_LOG: see test_power_cut.py.
 *
 * A record: one letter, inode (of a file, or of the folder that a name is in), offset, length of the data, the data.
 *   W write   T truncate (offset: the size)   S sync of a file or a folder
 *   N a name leads to a new file (offset: its inode)   D to a new folder   C to a file that exists
 *   R to a file that is renamed: a U follows at once   U a name is removed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int out = -1;
static char root[PATH_MAX];

#define REAL(name, type, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, name)

static int (*real_openat(void))(int, const char *, int, ...) {
    static int (*found)(int, const char *, int, ...);
    if (!found) found = dlsym(RTLD_NEXT, "openat64");
    return found;
}

static ssize_t real_write(int fd, const void *data, size_t size) {
    REAL("write", ssize_t, int, const void *, size_t);
    return real(fd, data, size);
}

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("POWER_ROOT"), *log = getenv("POWER_LOG");
    if (!where || !log || !realpath(where, root)) return;
    out = real_openat()(AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_below(const char *path) {
    size_t length = strlen(root);
    return out >= 0 && length && !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

/* The inode of an open file below the root, 0 of any other. */
static uint64_t inode_of(int fd) {
    char link[64], path[PATH_MAX];
    struct stat about;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path) && !fstat(fd, &about) && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) ? about.st_ino : 0;
}

static uint64_t inode_at(const char *path) {
    struct stat about;
    return lstat(path, &about) ? 0 : about.st_ino;
}

static void note(char kind, uint64_t inode, uint64_t offset, const void *data, uint64_t size) {
    int before = errno;
    char *record = malloc(25 + size);
    record[0] = kind;
    memcpy(record + 1, &inode, 8);
    memcpy(record + 9, &offset, 8);
    memcpy(record + 17, &size, 8);
    if (size) memcpy(record + 25, data, size);
    for (uint64_t done = 0; done < 25 + size;) {
        ssize_t wrote = real_write(out, record + done, 25 + size - done);
        if (wrote <= 0) abort();
        done += wrote;
    }
    free(record);
    errno = before;
}

/* The folder of a path, with its links resolved; the name in it. */
static int split(int at, const char *path, char *folder, char *name) {
    char whole[PATH_MAX], link[64], copy[PATH_MAX];
    if (path[0] == '/' || at == AT_FDCWD) {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t length = readlink(link, copy, sizeof copy - 1);
        if (length < 0) return 0;
        copy[length] = 0;
        if (snprintf(whole, sizeof whole, "%s/%s", copy, path) >= (int)sizeof whole) return 0;
    }
    strcpy(copy, whole);
    strcpy(name, basename(copy));
    strcpy(copy, whole);
    return realpath(dirname(copy), folder) && is_below(folder);
}

static void note_name(char kind, const char *folder, const char *name, uint64_t inode) {
    note(kind, inode_at(folder), inode, name, strlen(name));
}

/* -- files */

static int opened(int at, const char *path, int flags, mode_t mode) {
    char folder[PATH_MAX], name[PATH_MAX];
    struct stat before;
    int is_below_root = out >= 0 && (flags & (O_CREAT | O_TRUNC)) && !(flags & O_TMPFILE & ~O_DIRECTORY)
        && split(at, path, folder, name);
    if (!is_below_root) return real_openat()(at, path, flags, mode);
    pthread_mutex_lock(&lock);
    int is_new = fstatat(at, path, &before, 0) != 0;
    int fd = real_openat()(at, path, flags, mode);
    if (fd >= 0) {
        uint64_t inode = inode_of(fd);
        if (is_new) note_name('N', folder, name, inode);
        else if ((flags & O_TRUNC) && before.st_size) note('T', inode, 0, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); \
    mode = va_arg(rest, int); va_end(rest); }
int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return opened(at, path, flags, mode); }

static void note_write(int fd, uint64_t inode, off_t offset, const void *data, ssize_t size) {
    struct stat about;
    if (size <= 0) return;
    if (offset < 0) offset = lseek(fd, 0, SEEK_CUR) - size;  /* after the write, also of one that appends */
    if (!fstat(fd, &about)) note('W', inode, offset, data, size);
}

#define WRITES(call, offset, data) \
    uint64_t inode = out >= 0 ? inode_of(fd) : 0; \
    if (!inode) return call; \
    pthread_mutex_lock(&lock); \
    ssize_t done = call; \
    note_write(fd, inode, offset, data, done); \
    pthread_mutex_unlock(&lock); \
    return done;

ssize_t write(int fd, const void *data, size_t size) { WRITES(real_write(fd, data, size), -1, data) }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    REAL("pwrite", ssize_t, int, const void *, size_t, off_t);
    WRITES(real(fd, data, size, offset), offset, data)
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) {
    REAL("pwrite64", ssize_t, int, const void *, size_t, off_t);
    WRITES(real(fd, data, size, offset), offset, data)
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL("writev", ssize_t, int, const struct iovec *, int);
    uint64_t inode = out >= 0 ? inode_of(fd) : 0;
    if (!inode) return real(fd, parts, count);
    ssize_t all = 0;
    for (int at = 0; at < count; at++) {
        ssize_t done = write(fd, parts[at].iov_base, parts[at].iov_len);
        if (done < 0) return all ? all : done;
        all += done;
    }
    return all;
}

static int resized(int fd, off_t size, int (*real)(int, off_t)) {
    uint64_t inode = out >= 0 ? inode_of(fd) : 0;
    pthread_mutex_lock(&lock);
    int done = real(fd, size);
    if (inode && !done) note('T', inode, size, 0, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int ftruncate(int fd, off_t size) { REAL("ftruncate", int, int, off_t); return resized(fd, size, real); }
int ftruncate64(int fd, off_t size) { REAL("ftruncate64", int, int, off_t); return resized(fd, size, real); }
int truncate(const char *path, off_t size) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int done = ftruncate(fd, size);
    close(fd);
    return done;
}
int truncate64(const char *path, off_t size) { return truncate(path, size); }

static int synced(int fd, int (*real)(int)) {
    uint64_t inode = out >= 0 ? inode_of(fd) : 0;
    pthread_mutex_lock(&lock);
    int done = real(fd);
    if (inode && !done) note('S', inode, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int fsync(int fd) { REAL("fsync", int, int); return synced(fd, real); }
int fdatasync(int fd) { REAL("fdatasync", int, int); return synced(fd, real); }

/* -- names */

static int renamed(int from, const char *old, int to, const char *new) {
    static int (*real)(int, const char *, int, const char *);
    if (!real) real = dlsym(RTLD_NEXT, "renameat");
    char left[PATH_MAX], left_name[PATH_MAX], folder[PATH_MAX], name[PATH_MAX];
    int is_left = out >= 0 && split(from, old, left, left_name), is_here = out >= 0 && split(to, new, folder, name);
    pthread_mutex_lock(&lock);
    int done = real(from, old, to, new);
    if (!done && is_here) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        note_name('R', folder, name, inode_at(path));
    }
    if (!done && is_left) note_name('U', left, left_name, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int rename(const char *old, const char *new) { return renamed(AT_FDCWD, old, AT_FDCWD, new); }
int renameat(int from, const char *old, int to, const char *new) { return renamed(from, old, to, new); }

static int removed(int at, const char *path, int flags) {
    static int (*real)(int, const char *, int);
    if (!real) real = dlsym(RTLD_NEXT, "unlinkat");
    char folder[PATH_MAX], name[PATH_MAX];
    int is_here = out >= 0 && split(at, path, folder, name);
    pthread_mutex_lock(&lock);
    int done = real(at, path, flags);
    if (!done && is_here) note_name('U', folder, name, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    REAL("linkat", int, int, const char *, int, const char *, int);
    char folder[PATH_MAX], name[PATH_MAX], path[2 * PATH_MAX];
    int is_here = out >= 0 && split(to, new, folder, name);
    pthread_mutex_lock(&lock);
    int done = real(from, old, to, new, flags);
    if (!done && is_here) {
        snprintf(path, sizeof path, "%s/%s", folder, name);
        note_name('C', folder, name, inode_at(path));
    }
    pthread_mutex_unlock(&lock);
    return done;
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int mkdirat(int at, const char *path, mode_t mode) {
    REAL("mkdirat", int, int, const char *, mode_t);
    char folder[PATH_MAX], name[PATH_MAX], whole[2 * PATH_MAX];
    int is_here = out >= 0 && split(at, path, folder, name);
    pthread_mutex_lock(&lock);
    int done = real(at, path, mode);
    if (!done && is_here) {
        snprintf(whole, sizeof whole, "%s/%s", folder, name);
        note_name('D', folder, name, inode_at(whole));
    }
    pthread_mutex_unlock(&lock);
    return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
