//! The words of the phrases, English beside Chinese.

/// What a thing is, so that verbs and adjectives find something that suits them.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Food,
    Drink,
    Book,
    Letter,
    Tool,
    Furniture,
    Vehicle,
    Clothes,
    Plant,
    Animal,
    Person,
}

use Kind::*;

pub(super) struct Noun {
    pub(super) one: &'static str,
    /// None where it cannot be counted.
    pub(super) many: Option<&'static str>,
    pub(super) chinese: &'static str,
    pub(super) measure: &'static str,
    pub(super) kind: Kind,
}

const fn noun(
    one: &'static str,
    many: &'static str,
    chinese: &'static str,
    measure: &'static str,
    kind: Kind,
) -> Noun {
    Noun { one, many: Some(many), chinese, measure, kind }
}

const fn mass(one: &'static str, chinese: &'static str, kind: Kind) -> Noun {
    Noun { one, many: None, chinese, measure: "些", kind }
}

pub(super) const NOUNS: [Noun; 23] = [
    noun("apple", "apples", "苹果", "个", Food),
    noun("egg", "eggs", "鸡蛋", "个", Food),
    mass("bread", "面包", Food),
    mass("rice", "米饭", Food),
    mass("tea", "茶", Drink),
    mass("milk", "牛奶", Drink),
    noun("book", "books", "书", "本", Book),
    noun("letter", "letters", "信", "封", Letter),
    noun("story", "stories", "故事", "个", Letter),
    noun("pen", "pens", "笔", "支", Tool),
    noun("phone", "phones", "手机", "部", Tool),
    noun("computer", "computers", "电脑", "台", Tool),
    noun("table", "tables", "桌子", "张", Furniture),
    noun("chair", "chairs", "椅子", "把", Furniture),
    noun("car", "cars", "汽车", "辆", Vehicle),
    noun("bicycle", "bicycles", "自行车", "辆", Vehicle),
    noun("shirt", "shirts", "衬衫", "件", Clothes),
    noun("hat", "hats", "帽子", "顶", Clothes),
    noun("flower", "flowers", "花", "朵", Plant),
    noun("tree", "trees", "树", "棵", Plant),
    noun("cat", "cats", "猫", "只", Animal),
    noun("dog", "dogs", "狗", "只", Animal),
    noun("bird", "birds", "鸟", "只", Animal),
];

pub(super) struct Adjective {
    pub(super) english: &'static str,
    /// None where things are not compared by it.
    pub(super) comparative: Option<&'static str>,
    /// Before a noun.
    pub(super) chinese: &'static str,
    /// After one; none where it does not say anything by itself.
    pub(super) predicate: Option<&'static str>,
    pub(super) kinds: &'static [Kind],
}

const fn adjective(
    english: &'static str,
    comparative: Option<&'static str>,
    chinese: &'static str,
    predicate: Option<&'static str>,
    kinds: &'static [Kind],
) -> Adjective {
    Adjective { english, comparative, chinese, predicate, kinds }
}

const SIZED: &[Kind] = &[Food, Tool, Furniture, Vehicle, Clothes, Plant, Animal];
const MADE: &[Kind] = &[Book, Tool, Furniture, Vehicle, Clothes];
const COLORED: &[Kind] = &[Tool, Furniture, Vehicle, Clothes, Plant, Animal];
pub(super) const SOLD: &[Kind] = &[Food, Drink, Book, Tool, Furniture, Vehicle, Clothes, Plant];

pub(super) const ADJECTIVES: [Adjective; 14] = [
    adjective("big", Some("bigger"), "大", Some("大"), SIZED),
    adjective("small", Some("smaller"), "小", Some("小"), SIZED),
    adjective("new", Some("newer"), "新", Some("新"), MADE),
    adjective("old", Some("older"), "旧", Some("旧"), MADE),
    adjective("cheap", Some("cheaper"), "便宜的", Some("便宜"), SOLD),
    adjective("expensive", Some("more expensive"), "昂贵的", Some("贵"), SOLD),
    adjective(
        "beautiful",
        Some("more beautiful"),
        "漂亮的",
        Some("漂亮"),
        &[Clothes, Plant, Animal],
    ),
    adjective("interesting", Some("more interesting"), "有趣的", Some("有趣"), &[Book, Letter]),
    adjective("delicious", None, "好吃的", Some("好吃"), &[Food]),
    adjective("red", None, "红色的", None, COLORED),
    adjective("black", None, "黑色的", None, COLORED),
    adjective("tired", None, "", Some("累"), &[Person]),
    adjective("busy", Some("busier"), "", Some("忙"), &[Person]),
    adjective("tall", Some("taller"), "", Some("高"), &[Person]),
];

pub(super) struct Verb {
    pub(super) base: &'static str,
    pub(super) third: &'static str,
    pub(super) past: &'static str,
    pub(super) going_on: &'static str,
    pub(super) chinese: &'static str,
    pub(super) objects: &'static [Kind],
}

const fn verb(
    [base, third, past, going_on]: [&'static str; 4],
    chinese: &'static str,
    objects: &'static [Kind],
) -> Verb {
    Verb { base, third, past, going_on, chinese, objects }
}

pub(super) const VERBS: [Verb; 10] = [
    verb(["eat", "eats", "ate", "eating"], "吃", &[Food]),
    verb(["drink", "drinks", "drank", "drinking"], "喝", &[Drink]),
    verb(["read", "reads", "read", "reading"], "读", &[Book, Letter]),
    verb(["write", "writes", "wrote", "writing"], "写", &[Letter]),
    verb(["buy", "buys", "bought", "buying"], "买", SOLD),
    verb(["draw", "draws", "drew", "drawing"], "画", &[Plant, Animal]),
    verb(["wash", "washes", "washed", "washing"], "洗", &[Clothes, Vehicle]),
    verb(["feed", "feeds", "fed", "feeding"], "喂", &[Animal]),
    verb(["help", "helps", "helped", "helping"], "帮助", &[Person]),
    verb(["visit", "visits", "visited", "visiting"], "拜访", &[Person]),
];

/// What is done for somebody: Chinese puts 给 and the person before the verb.
pub(super) const FAVORS: [(Verb, &str); 3] = [
    (verb(["buy", "buys", "bought", "buying"], "买", SOLD), "for"),
    (verb(["draw", "draws", "drew", "drawing"], "画", &[Plant, Animal]), "for"),
    (verb(["write", "writes", "wrote", "writing"], "写", &[Letter]), "to"),
];

pub(super) const CALL: Verb = verb(["call", "calls", "called", "calling"], "打", &[]);
pub(super) const GO: Verb = verb(["go", "goes", "went", "going"], "去", &[]);

/// States: no adverbials, no 了.
pub(super) const STATES: [(&str, &str, &str, &[Kind]); 3] = [
    ("like", "likes", "喜欢", &[Food, Drink, Book, Letter, Clothes, Plant, Animal]),
    ("need", "needs", "需要", &[Tool, Furniture, Vehicle, Clothes]),
    ("know", "knows", "认识", &[Person]),
];

/// Subject, object, possessive, Chinese, and whether it is one person spoken about.
pub(super) const PRONOUNS: [(&str, &str, &str, &str, bool); 6] = [
    ("I", "me", "my", "我", false),
    ("you", "you", "your", "你", false),
    ("he", "him", "his", "他", true),
    ("she", "her", "her", "她", true),
    ("we", "us", "our", "我们", false),
    ("they", "them", "their", "他们", false),
];

/// People who are somebody's: Chinese says 我妈妈 without 的.
pub(super) const RELATIONS: [(&str, &str); 6] = [
    ("mother", "妈妈"),
    ("father", "爸爸"),
    ("brother", "哥哥"),
    ("sister", "姐姐"),
    ("friend", "朋友"),
    ("teacher", "老师"),
];

pub(super) const NAMES: [(&str, &str); 3] = [("Anna", "安娜"), ("Tom", "汤姆"), ("Mary", "玛丽")];

pub(super) const GROUPS: [(&str, &str); 2] =
    [("the students", "学生们"), ("the children", "孩子们")];

pub(super) const NUMBERS: [(&str, &str); 4] =
    [("two", "两"), ("three", "三"), ("five", "五"), ("ten", "十")];

/// Where people do things.
pub(super) const PLACES: [(&str, &str); 8] = [
    ("in the garden", "花园里"),
    ("in the kitchen", "厨房里"),
    ("in the park", "公园里"),
    ("in the library", "图书馆里"),
    ("in the shop", "商店里"),
    ("at school", "学校"),
    ("at home", "家"),
    ("by the river", "河边"),
];

/// Where small things lie.
pub(super) const SPOTS: [(&str, &str); 5] = [
    ("on the table", "桌子上"),
    ("on the chair", "椅子上"),
    ("in the bag", "包里"),
    ("in the box", "盒子里"),
    ("under the bed", "床下"),
];

/// Where animals, plants and large things are. None of it is in [`PLACES`]: "he drew the dog in
/// the garden" would not tell who is there.
pub(super) const OUTSIDE: [(&str, &str); 4] = [
    ("behind the house", "房子后面"),
    ("in front of the school", "学校前面"),
    ("by the road", "路边"),
    ("on the hill", "山上"),
];

/// Where people go.
pub(super) const GOALS: [(&str, &str); 8] = [
    ("to the park", "公园"),
    ("to the library", "图书馆"),
    ("to the station", "车站"),
    ("to the shop", "商店"),
    ("to the hospital", "医院"),
    ("to school", "学校"),
    ("to Beijing", "北京"),
    ("to Shanghai", "上海"),
];

pub(super) const MEANS: [(&str, &str); 3] =
    [("by bus", "坐公共汽车"), ("by train", "坐火车"), ("by bicycle", "骑自行车")];

pub(super) const HABITS: [(&str, &str); 3] =
    [("every day", "每天"), ("every morning", "每天早上"), ("every evening", "每天晚上")];
pub(super) const TODAY: [(&str, &str); 4] = [
    ("today", "今天"),
    ("in the morning", "早上"),
    ("in the evening", "晚上"),
    ("on Sundays", "星期天"),
];
pub(super) const PAST: [(&str, &str); 4] = [
    ("yesterday", "昨天"),
    ("last week", "上个星期"),
    ("yesterday evening", "昨天晚上"),
    ("this morning", "今天早上"),
];
pub(super) const FUTURE: [(&str, &str); 3] =
    [("tomorrow", "明天"), ("next week", "下个星期"), ("tomorrow evening", "明天晚上")];

pub(super) const FREQUENCIES: [(&str, &str); 4] =
    [("often", "经常"), ("always", "总是"), ("sometimes", "有时候"), ("never", "从来不")];
